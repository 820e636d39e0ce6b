import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { monitorCommands, startRedis, type TestRedis } from '../../support/redis.js';
import { until } from '../../support/until.js';

let redis: TestRedis;
let gateway: TestGateway;
let provider: TrustedProvider;
let authorization: string;
let endMonitor: () => void;
let commands: string[] = [];
/** What the gateway asks Redis while nobody asks it: what other processes erased. */
let background: ReadonlySet<string> = new Set();

beforeAll(async () => {
  redis = await startRedis();
  // What a script calls has the source `lua` and is part of its command.
  endMonitor = await monitorCommands(redis.url, (command, source) => {
    if (source !== 'lua') commands.push(command.slice(0, 120));
  });
  provider = await startTrustedProvider();
  // A caller with an identity has a share of the budget, which is counted as well.
  const claims = { sub: 'ada', scope: 'refresh-jobs:read taxpayers:read taxpayers:any' };
  authorization = `Bearer ${await provider.token(claims)}`;
  gateway = await startTestGateway({
    ...provider.env,
    CACHE_URL: redis.url,
    RATE_LIMIT_PER_MINUTE: '0', // or the count of the callers' operations comes in between, once a second
    TOKEN_BUDGET_PER_HOUR: '16', // below 17 nothing is reserved, which costs one more operation in an hour
  });
  await commandsOf(newTaxpayer()); // Redis learns the scripts
  commands = [];
  await until(() => commands.filter((command) => command === commands[0]).length > 1);
  background = new Set(commands);
});
afterAll(async () => {
  endMonitor();
  await gateway.stop();
  await provider.stop();
  await redis.stop();
});

function newTaxpayer(): string {
  const { control } = gateway.sandbox;
  const { id } = control.addTaxpayer();
  for (const jobId of ['one', 'two', 'slow']) control.addJob({ taxpayerId: id, jobId, endsAs: null });
  return id;
}

/** What the gateway asks Redis for one read of a job. */
async function commandsOf(id: string, jobId = 'one'): Promise<readonly string[]> {
  commands = [];
  const document = 'query ($id: ID!, $jobId: ID!) { refreshJob(taxpayerId: $id, jobId: $jobId) { status } }';
  expect((await gateway.query(document, { id, jobId }, { authorization })).errors).toBeUndefined();
  await redis.command('ECHO', 'the end');
  await until(() => commands.some((command) => /echo the end/i.test(command)));
  const asked = commands.filter((command) => !background.has(command));
  return asked.filter((command) => !/^(echo|info|client|auth|select|hello) /i.test(`${command} `));
}

it('a job and its token, neither of them known, take at most eight operations of the store for their two calls', async () => {
  const id = newTaxpayer();
  const calls = gateway.sandbox.control.counters();
  const asked = await commandsOf(id);
  const { taxpayerToken, refreshJob } = gateway.sandbox.control.counters();
  expect([taxpayerToken - calls.taxpayerToken, refreshJob - calls.refreshJob]).toEqual([1, 1]);
  if (asked.length > 8) throw new Error(`${asked.length} operations:\n${asked.join('\n')}`);
});

it('a job whose token is known takes at most four', async () => {
  const id = newTaxpayer();
  await commandsOf(id);
  const asked = await commandsOf(id, 'two');
  expect(gateway.sandbox.control.jobCalls(id, 'two')).toBe(1);
  if (asked.length > 4) throw new Error(`${asked.length} operations:\n${asked.join('\n')}`);
});

it('a call that takes longer than a second takes one more for each second', async () => {
  const id = newTaxpayer();
  await commandsOf(id);
  const quick = await commandsOf(id, 'two');
  gateway.sandbox.control.arm({ endpoint: 'refreshJob', fault: { delayMs: 2500 }, times: 1 });
  const startedAt = performance.now();
  const slow = await commandsOf(id, 'slow');
  const renewals = slow.length - quick.length;
  expect(renewals).toBeGreaterThanOrEqual(2);
  expect(renewals).toBeLessThanOrEqual((performance.now() - startedAt) / 1000);
});
