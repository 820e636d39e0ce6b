// Events in the life of a fleet, and how many token calls each may cost.

import { setTimeout as delay } from 'node:timers/promises';
import { inParallel } from '../inParallel.js';
import { watchAll } from './watchers.js';

const exactly = (n) => ({ text: `${n}`, holds: ({ tokenCalls, failed }) => tokenCalls === n && failed === 0 });
const atMost = (n) => ({ text: `at most ${n}`, holds: ({ tokenCalls, failed }) => tokenCalls <= n && failed === 0 });

/** The ids of the sandbox's generated taxpayers. */
const ids = ({ sandbox }) => sandbox.taxpayerIds;

/** Reads every taxpayer once, so that the fleet has every token. */
async function warm(fleet, drive) {
  await inParallel(ids(fleet).length, 50, (n) => drive.token(n, ids(fleet)[n]));
  await drive.forget();
}

async function replaceAll(fleet, how) {
  for (const [n, gateway] of fleet.gateways.entries()) {
    await gateway[how]();
    fleet.gateways[n] = await fleet.start();
  }
}

export const scenarios = [
  {
    name: 'cold-stampede',
    taxpayers: 1,
    promised: exactly(1),
    run: async (fleet, drive) => {
      await inParallel(2000, 2000, (n) => drive.token(n, ids(fleet)[0]));
    },
  },
  {
    name: 'thousand-taxpayers',
    taxpayers: 1000,
    promised: exactly(1000),
    run: async (fleet, drive) => {
      await inParallel(20_000, 400, (n) => drive.token(n, ids(fleet)[Math.floor(n / 20)]));
    },
  },
  {
    name: 'rolling-restart',
    taxpayers: 100,
    promised: exactly(0),
    run: async (fleet, drive) => {
      await warm(fleet, drive);
      await replaceAll(fleet, 'stop');
      await inParallel(2000, 200, (n) => drive.token(n, ids(fleet)[n % 100]));
    },
  },
  {
    name: 'kill-all',
    taxpayers: 100,
    promised: exactly(0),
    run: async (fleet, drive) => {
      await warm(fleet, drive);
      await Promise.all(fleet.gateways.map((gateway) => gateway.kill()));
      fleet.gateways = await Promise.all(fleet.gateways.map(() => fleet.start()));
      await inParallel(2000, 200, (n) => drive.token(n, ids(fleet)[n % 100]));
    },
  },
  {
    name: 'kill-lease-holder',
    taxpayers: 1,
    // the call of the killed process and that of its successor; only the request to the killed process fails
    promised: {
      text: '2, p99 at most 4 s',
      holds: ({ tokenCalls, failed, p99 }) => tokenCalls === 2 && failed === 1 && p99 <= 4000,
    },
    run: async (fleet, drive) => {
      const [id] = ids(fleet);
      await fleet.sandbox.control('arm', { endpoint: 'taxpayerToken', fault: { gate: 'never' }, times: 1 });
      const [holder, ...others] = fleet.gateways;
      fleet.gateways = [holder];
      const lost = drive.token(0, id);
      await fleet.sandbox.control('whenCalled', 'taxpayerToken', 1);
      fleet.gateways = others;
      const waiting = inParallel(300, 300, (n) => drive.token(n, id));
      await holder.kill();
      await lost;
      await waiting;
      fleet.gateways.push(await fleet.start());
    },
  },
  {
    name: 'token-rotation',
    taxpayers: 20,
    promised: exactly(20),
    run: async (fleet, drive) => {
      const jobs = new Map();
      for (const taxpayerId of ids(fleet)) {
        const { jobId } = await fleet.sandbox.control('addJob', { taxpayerId, endsAs: null });
        jobs.set(taxpayerId, jobId);
      }
      await warm(fleet, drive);
      const ask = (n) => drive.job(n, ids(fleet)[n % 20], jobs.get(ids(fleet)[n % 20]));
      await inParallel(500, 100, ask);
      await fleet.sandbox.control('rotateAllTokens');
      // Statuses are cached for a second: only a longer load uses every one of the new tokens.
      for (let burst = 0; burst < 6; burst += 1) {
        await inParallel(500, 200, ask);
        await delay(500);
      }
    },
  },
  {
    name: 'watched-taxpayers',
    only: 'redis',
    taxpayers: 50,
    settings: { TOKEN_FRESH_SECONDS: '' },
    // 1,000 watchers for two minutes: three reads of each taxpayer, a minute apart, as for one watcher
    promised: exactly(150),
    run: async (fleet, drive) => {
      const beganAt = performance.now();
      const watching = await watchAll(fleet.gateways, ids(fleet), 1000);
      await delay(90_000 - (performance.now() - beganAt));
      for (const id of ids(fleet)) {
        await fleet.sandbox.control('updateTaxpayer', id, { status: 'AUTHORIZED' });
      }
      for (const told of await watching.toldWithin(60_000)) drive.note(told);
      watching.end();
    },
  },
  {
    name: 'redis-restart',
    only: 'redis',
    taxpayers: 100,
    promised: exactly(0),
    run: async (fleet, drive) => {
      await warm(fleet, drive);
      await inParallel(400, 100, (n) => drive.token(n, ids(fleet)[Math.floor(n / 4)]));
      const underLoad = inParallel(8000, 100, (n) => drive.token(n, ids(fleet)[n % 100]));
      await fleet.redis.restart();
      await underLoad;
    },
  },
  {
    name: 'redis-dead',
    only: 'redis',
    taxpayers: 100,
    // without a shared store, each of the four processes asks once per taxpayer
    promised: atMost(400),
    run: async (fleet, drive) => {
      await fleet.redis.stop();
      await inParallel(4000, 200, (n) => drive.token(n, ids(fleet)[Math.floor(n / 4) % 100]));
    },
  },
];
