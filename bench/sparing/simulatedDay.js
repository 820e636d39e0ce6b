// A day of a fleet in a minute: real brokers, a real store and the real sandbox, on a simulated clock. Requests are
// Zipf distributed over the taxpayers, a deploy comes every four hours, some tokens are rotated, and the service has an outage.

import { Sealer } from '../../src/cache/sealing.ts';
import { loadConfig } from '../../src/config/config.ts';
import { Secret } from '../../src/config/secret.ts';
import { identifierReader } from '../../src/datasources/identifiers.ts';
import { createLogger } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/Metrics.ts';
import { wireServices } from '../../src/services.ts';
import { MemoryStore } from '../../src/stores/MemoryStore.ts';
import { real, replacePlatform, restorePlatform } from '../../test/support/platform.js';
import { startSandbox } from '../../test/support/sandbox.ts';
import { seeded } from '../../test/support/seeded.js';

const day = { members: 4, taxpayers: 500, requests: 24_000, hours: 24, deployEveryHours: 4, outageHours: [13, 13.5] };

/** @returns figures of the day, and a text of them */
export async function simulateDay() {
  const sandbox = await startSandbox({ clientId: 'day', clientSecret: 'day-secret', keepsRequests: false });
  const { control } = sandbox;
  const startedAt = Date.now();
  let clock = startedAt;
  const now = () => clock;
  replacePlatform(() => ({ now, monotonicNow: () => real.monotonicNow() + now(), random: () => 0 }));
  const store = new MemoryStore({ maxEntries: 1_000_000 });
  const shared = { sandbox, store, metrics: new Metrics(), log: createLogger('silent', { write: () => {} }) };
  const deploy = () => Array.from({ length: day.members }, () => member(shared));
  let members = deploy();
  const { taxpayerId, jobId } = identifierReader(256);
  const taxpayers = control.addTaxpayers(day.taxpayers, { status: 'AUTHORIZED' }).map((id) => taxpayerId(id));
  const jobs = taxpayers.map((id) => jobId(control.addJob({ taxpayerId: id, endsAs: null }).jobId));
  const random = seeded(20);
  const pick = zipf(day.taxpayers, random);

  const tally = { deploys: 0, rotations: 0, stale: 0, failed: 0, asked: new Set() };
  for (let n = 0; n < day.requests; n += 1) {
    const hour = (n / day.requests) * day.hours;
    clock = startedAt + hour * 3_600_000;
    if (hour >= (tally.deploys + 1) * day.deployEveryHours) {
      tally.deploys += 1;
      members = deploy();
    }
    control.disarmAll();
    const out = hour >= day.outageHours[0] && hour < day.outageHours[1];
    if (out) control.arm({ endpoint: 'any', fault: { status: 503 } });
    const index = pick();
    if (random() < 0.001) {
      tally.rotations += tally.asked.has(index) ? 1 : 0;
      control.rotateToken(taxpayers[index]);
    }
    const { broker, jobs: statuses } = members[n % day.members];
    try {
      if (random() < 0.2) tally.stale += (await broker.record(taxpayers[index])).stale ? 1 : 0;
      else await statuses.status(taxpayers[index], jobs[index]);
      tally.asked.add(index);
    } catch {
      tally.failed += 1;
    }
  }
  const { taxpayerToken } = control.counters();
  for (const { stop } of members) stop();
  await sandbox.stop();
  restorePlatform();
  const text = [
    `A simulated day: ${day.members} processes, ${day.requests} requests for ${tally.asked.size} taxpayers, ${tally.deploys} deploys of`,
    `all processes, ${tally.rotations} rotated tokens, a service outage of 30 minutes. Token calls: ${taxpayerToken}`,
    `(${((1000 * taxpayerToken) / day.requests).toFixed(0)} per 1,000 requests, records that were no longer fresh included);`,
    `shown stale: ${tally.stale}; failed (job statuses during the outage): ${tally.failed}.`,
  ].join('\n');
  return { ...tally, tokenCalls: taxpayerToken, text };
}

function member({ sandbox, store, metrics, log }) {
  const clientSecret = new Secret('day-secret');
  return wireServices({
    config: loadConfig({
      UPSTREAM_BASE_URL: sandbox.url,
      UPSTREAM_CLIENT_ID: 'day',
      UPSTREAM_CLIENT_SECRET: 'day-secret',
      AUTH_MODE: 'disabled',
      BREAKER_RESET_MS: '1',
      TOKEN_BUDGET_PER_HOUR: '0',
    }),
    log,
    metrics,
    store,
    sealer: new Sealer({ from: 'client-secret', secret: clientSecret }),
    baseUrl: sandbox.url,
    credentials: () => ({ clientId: 'day', clientSecret }),
  });
}

/** Random indexes; the probability of n is proportional to 1 / (n + 1). */
function zipf(count, random) {
  const sums = [];
  for (let n = 0; n < count; n += 1) sums.push((sums[n - 1] ?? 0) + 1 / (n + 1));
  return () => {
    const target = random() * sums[count - 1];
    return sums.findIndex((sum) => sum >= target);
  };
}
