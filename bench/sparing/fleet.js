// A fleet of gateway processes over one shared store, and the counting around a scenario.

import { Agent } from 'node:http';
import { ask, outcomeOf } from '../caller.js';
import { inParallel } from '../inParallel.js';
import { startGateway, startRedis, startService, withStarted } from '../processes.js';

const size = 4;
const tokenQuery = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
const jobQuery =
  'query ($taxpayerId: ID!, $jobId: ID!) { refreshJob(taxpayerId: $taxpayerId, jobId: $jobId) { status } }';

/** Runs a scenario with a fresh fleet and returns its row of figures. */
export function withFleet({ taxpayers, settings, run }) {
  return withStarted(async (start) => {
    const service = await start(startService({ latencyMs: 50, taxpayers }));
    const redis = await start(startRedis());
    const env = {
      AUTH_MODE: 'disabled',
      TOKEN_BUDGET_PER_HOUR: '0',
      RATE_LIMIT_PER_MINUTE: '0',
      CACHE_URL: redis.url,
      TOKEN_FRESH_SECONDS: '900', // so that no record expires during a scenario: by default, a new one is fresh for a minute
      ...settings,
    };
    const agent = new Agent({ keepAlive: true, maxSockets: 1000 });
    await start({ stop: () => agent.destroy() });
    const answers = [];
    const send = async (n, query, variables) => {
      const { url } = fleet.gateways[n % fleet.gateways.length];
      answers.push(await ask({ url, agent }, { query, variables }));
    };
    const startMember = () => start(startGateway(service, { env }));
    const fleet = {
      service,
      redis,
      ids: service.taxpayerIds,
      gateways: await Promise.all(Array.from({ length: size }, startMember)),
      start: startMember,
      /** Reads records from the gateways in turn; the n-th read is of the taxpayer with the index `of(n)`. */
      records: (count, atOnce, of) => inParallel(count, atOnce, (n) => send(n, tokenQuery, { id: fleet.ids[of(n)] })),
      /** Reads the statuses of `jobs` in turn. */
      statuses: (count, atOnce, jobs) => inParallel(count, atOnce, (n) => send(n, jobQuery, jobs[n % jobs.length])),
      /** Adds an event of a subscription to the answers: `{ ms, failure }`. */
      note: (answer) => answers.push(answer),
      /** Reads every taxpayer once, so that the fleet has every token. What came before the scenario does not count. */
      warm: async () => {
        await fleet.records(taxpayers, 50, (n) => n);
        answers.length = 0;
        await service.control('resetCounters');
      },
    };
    await run(fleet);
    const { taxpayerToken, refreshJob } = await service.control('counters');
    const calls = { tokenCalls: taxpayerToken, jobCalls: refreshJob };
    return { processes: fleet.gateways.length, ...outcomeOf(answers), ...calls };
  });
}
