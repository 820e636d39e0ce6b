// A fleet of gateway processes over one shared store, and the counting around a scenario.

import { Agent } from 'node:http';
import { ask } from '../caller.js';
import { startGateway, startRedis, startService, temporaryDirectory, withStarted } from '../processes.js';
import { quantile } from '../quantile.js';

const size = 4;
const tokenQuery = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
const jobQuery = 'query ($id: ID!, $job: ID!) { refreshJob(taxpayerId: $id, jobId: $job) { status } }';

/** Runs a scenario with a fresh fleet and returns its row of figures. */
export function withFleet({ taxpayers, settings, run }, store) {
  return withStarted(async (start) => {
    const sandbox = await start(startService({ latencyMs: 50, taxpayers }));
    const redis = store === 'redis' ? await start(startRedis()) : undefined;
    const directory = temporaryDirectory('store');
    await start({ stop: directory.remove });
    const env = {
      AUTH_MODE: 'disabled',
      TOKEN_BUDGET_PER_HOUR: '0',
      RATE_LIMIT_PER_MINUTE: '0',
      CACHE_URL: redis?.url ?? `lmdb:${directory.path}`,
      TOKEN_FRESH_SECONDS: '900', // so that no record expires during a scenario: by default, a new one is fresh for a minute
      ...settings,
    };
    const startMember = () => start(startGateway(sandbox, { env }));
    const members = await Promise.all(Array.from({ length: size }, startMember));
    const fleet = { sandbox, redis, start: startMember, gateways: members };
    const agent = new Agent({ keepAlive: true, maxSockets: 1000 });
    await start({ stop: () => agent.destroy() });
    const answers = [];
    const send = async (n, query, variables) => {
      const { url } = fleet.gateways[n % fleet.gateways.length];
      answers.push(await ask({ url, agent }, { query, variables }));
    };
    await run(fleet, {
      /** Sends a token query to the n-th gateway. */
      token: (n, id) => send(n, tokenQuery, { id }),
      job: (n, id, job) => send(n, jobQuery, { id, job }),
      /** Adds an event of a subscription to the answers: `{ ms, failure }`. */
      note: (answer) => answers.push(answer),
      /** Drops the answers and calls counted so far. */
      forget: async () => {
        answers.length = 0;
        await sandbox.control('resetCounters');
      },
    });
    const { taxpayerToken, refreshJob } = await sandbox.control('counters');
    const failures = answers.filter(({ failure }) => failure !== undefined);
    if (failures.length > 0) process.stderr.write(`  first failure: ${failures[0].failure}\n`);
    const latencies = answers.map(({ ms }) => ms);
    return {
      processes: fleet.gateways.length,
      requests: answers.length,
      failed: failures.length,
      tokenCalls: taxpayerToken,
      jobCalls: refreshJob,
      p50: quantile(latencies, 0.5),
      p99: quantile(latencies, 0.99),
    };
  });
}
