import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, jest } from '@jest/globals';
import { atEnd } from '../support/atEnd.js';
import { storeContract } from '../support/stores/storeContract.js';
import { NodeRuntime } from './NodeRuntime.js';
import { SimulatedStore } from './SimulatedStore.js';
import { StoreLine } from './StoreLine.js';
import { World } from './World.js';

/** A world in which no message is lost or late. */
class CalmWorld extends World {
  override chance(): boolean {
    return false;
  }
}

const noTroubles = { of: () => undefined, nameOf: (key: string) => key };

// The store reads the clock of the world while it works.
const now = performance.now.bind(performance);
beforeAll(() => {
  jest.spyOn(performance, 'now').mockImplementation(() => World.running?.monotonicNow() ?? now());
});
afterAll(() => {
  jest.restoreAllMocks();
});

storeContract('The store of the simulator', async () => {
  const world = new CalmWorld(1);
  const store = new SimulatedStore(() => world.now);
  const startedAt = now();
  let skippedMs = 0;
  let lines = 0;
  let isOver = false;
  const goOn = async () => {
    while (!isOver) {
      await world.time.runUntil(now() - startedAt + skippedMs);
      await sleep(1);
    }
  };
  const end = goOn();
  atEnd(async () => {
    isOver = true;
    await end;
  });
  return {
    open: async () => {
      lines += 1;
      const runtime = new NodeRuntime(world, { aheadMs: 0, rate: 1 }, lines);
      return new StoreLine(world, lines, runtime, store, noTroubles);
    },
    pass: async (ms) => {
      skippedMs += ms;
      const until = world.now + ms;
      while (world.now < until) await sleep(1);
    },
  };
});
