// Events in the life of a fleet, and how many token calls each may cost.

import { setTimeout as delay } from 'node:timers/promises';
import { addJobs } from '../processes.js';
import { toldAuthorized, watchAll } from './watchers.js';

const exactly = (n) => ({ text: `${n}`, holds: ({ tokenCalls, failed }) => tokenCalls === n && failed === 0 });
const atMost = (n) => ({ text: `at most ${n}`, holds: ({ tokenCalls, failed }) => tokenCalls <= n && failed === 0 });

export const scenarios = [
  {
    name: 'cold-stampede',
    taxpayers: 1,
    promised: exactly(1),
    run: (fleet) => fleet.records(2000, 2000, () => 0),
  },
  {
    name: 'rolling-restart',
    taxpayers: 100,
    promised: exactly(0),
    run: async (fleet) => {
      await fleet.warm();
      for (const [n, gateway] of fleet.gateways.entries()) {
        await gateway.stop();
        fleet.gateways[n] = await fleet.start();
      }
      await fleet.records(2000, 200, (n) => n % 100);
    },
  },
  {
    name: 'kill-all',
    taxpayers: 100,
    promised: exactly(0),
    run: async (fleet) => {
      await fleet.warm();
      await Promise.all(fleet.gateways.map((gateway) => gateway.kill()));
      fleet.gateways = await Promise.all(fleet.gateways.map(fleet.start));
      await fleet.records(2000, 200, (n) => n % 100);
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
    run: async (fleet) => {
      await fleet.service.control('arm', { endpoint: 'taxpayerToken', fault: { gate: 'never' }, times: 1 });
      const [holder, ...others] = fleet.gateways;
      fleet.gateways = [holder];
      const lost = fleet.records(1, 1, () => 0);
      await fleet.service.control('whenCalled', 'taxpayerToken', 1);
      fleet.gateways = others;
      const waiting = fleet.records(300, 300, () => 0);
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
    run: async (fleet) => {
      const jobs = await addJobs(fleet.service, fleet.ids);
      await fleet.warm();
      await fleet.statuses(500, 100, jobs);
      await fleet.service.control('rotateAllTokens');
      // Statuses are cached for a second: only a longer load uses every one of the new tokens.
      for (let burst = 0; burst < 6; burst += 1) {
        await fleet.statuses(500, 200, jobs);
        await delay(500);
      }
    },
  },
  {
    name: 'watched-taxpayers',
    taxpayers: 50,
    settings: { TOKEN_FRESH_SECONDS: '' },
    // 1,000 watchers for two minutes: three reads of each taxpayer, a minute apart, as for one watcher
    promised: exactly(150),
    run: async (fleet) => {
      const beganAt = performance.now();
      const sockets = await watchAll(fleet, 1000);
      await delay(90_000 - (performance.now() - beganAt));
      const told = sockets.map(toldAuthorized);
      for (const id of fleet.ids) await fleet.service.control('updateTaxpayer', id, { status: 'AUTHORIZED' });
      for (const answer of await Promise.all(told)) fleet.note(answer);
      for (const socket of sockets) socket.terminate();
    },
  },
  {
    name: 'redis-restart',
    taxpayers: 100,
    promised: exactly(0),
    run: async (fleet) => {
      await fleet.warm();
      await fleet.records(400, 100, (n) => Math.floor(n / 4));
      const underLoad = fleet.records(8000, 100, (n) => n % 100);
      await fleet.redis.kill();
      await fleet.redis.restart();
      await underLoad;
    },
  },
  {
    name: 'redis-dead',
    taxpayers: 100,
    // without a shared store, each of the four processes asks once per taxpayer
    promised: atMost(400),
    run: async (fleet) => {
      await fleet.redis.kill();
      await fleet.records(4000, 200, (n) => Math.floor(n / 4) % 100);
    },
  },
];
