// A fleet of gateway processes over one shared store, and the counting around a scenario.

import { startGatewayProcess, startRedisProcess, startSandboxProcess, temporaryDirectory } from '../processes.js';
import { inParallel, Load, quantile } from './load.js';

const size = 4;
const tokenQuery = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
const jobQuery = 'query ($id: ID!, $job: ID!) { refreshJob(taxpayerId: $id, jobId: $job) { status } }';

/** Runs `scenario` with a fresh fleet and returns its row of figures. */
export async function withFleet({ store, taxpayers, settings: own = {} }, scenario) {
  const sandbox = await startSandboxProcess({ latencyMs: 50, taxpayers });
  const redis = store === 'redis' ? await startRedisProcess() : undefined;
  const directory = temporaryDirectory();
  // A fixed freshness, so that no record expires during a scenario: by default, a new record is fresh for a minute only.
  const settings = { CACHE_URL: redis?.url ?? `lmdb:${directory.path}`, TOKEN_FRESH_SECONDS: '900', ...own };
  const start = () => startGatewayProcess(sandbox, settings);
  const fleet = { sandbox, redis, start, gateways: await Promise.all(Array.from({ length: size }, () => start())) };
  const load = new Load();
  const answers = [];
  const record = async (answer) => answers.push(await answer);
  const drive = {
    /** Sends a token query to the n-th gateway. */
    token: (n, id) => record(load.send(fleet.gateways[n % fleet.gateways.length].origin, tokenQuery, { id })),
    job: (n, id, job) => record(load.send(fleet.gateways[n % fleet.gateways.length].origin, jobQuery, { id, job })),
    many: inParallel,
    /** Adds an event of a subscription to the answers: `{ ms, failure }`. */
    note: (answer) => answers.push(answer),
    /** Drops the answers and calls counted so far. */
    forget: async () => {
      answers.length = 0;
      await sandbox.control('resetCounters');
    },
  };
  try {
    await scenario(fleet, drive);
    const counters = await sandbox.control('counters');
    const waits = await Promise.all(fleet.gateways.map(leaseWaits));
    const failures = answers.filter(({ failure }) => failure !== undefined);
    if (failures.length > 0) process.stderr.write(`  first failure: ${failures[0].failure}\n`);
    return {
      processes: fleet.gateways.length,
      requests: answers.length,
      failed: failures.length,
      tokenCalls: counters.taxpayerToken,
      jobCalls: counters.refreshJob,
      leaseWaits: waits.reduce((sum, n) => sum + n, 0),
      p50: quantile(
        answers.map(({ ms }) => ms),
        0.5,
      ),
      p99: quantile(
        answers.map(({ ms }) => ms),
        0.99,
      ),
    };
  } finally {
    load.close();
    await Promise.all(fleet.gateways.map((gateway) => gateway.stop()));
    await redis?.stop();
    await sandbox.stop();
    directory.remove();
  }
}

async function leaseWaits({ origin }) {
  const text = await (await fetch(`${origin}/metrics`)).text();
  return [...text.matchAll(/^gateway_lease_wait_seconds_count\{[^}]*\} (\d+)/gm)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  );
}
