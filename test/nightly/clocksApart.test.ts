import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { environmentFor, type GatewayProcess, postQuery, spawnGateway } from '../support/gateway.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { type Sandbox, startSandbox } from '../support/sandbox.js';
import { clockAhead } from '../support/wallClock.js';

const apartMs = 300_000;

const read = ({ origin }: GatewayProcess, id: string) =>
  postQuery<{ taxpayerToken: { fetchedAt: string } }>(
    origin,
    'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { fetchedAt } }',
    { id },
  );
const readJob = ({ origin }: GatewayProcess, id: string, job: string) =>
  postQuery<{ refreshJob: { status: string } }>(
    origin,
    'query ($id: ID!, $job: ID!) { refreshJob(taxpayerId: $id, jobId: $job) { status } }',
    { id, job },
  );
const createLink = ({ origin }: GatewayProcess, key: string) =>
  postQuery<{ createClientLink: { clientLink: { id: string } } }>(
    origin,
    'mutation ($key: String!) { createClientLink(input: { idempotencyKey: $key }) { clientLink { id } } }',
    { key },
  );
const codesOf = (answers: readonly { errors?: readonly { extensions: { code: string } }[] }[]) =>
  answers.flatMap(({ errors = [] }) => errors.map(({ extensions }) => extensions.code));

describe('Gateways whose clocks are five minutes apart', () => {
  let sandbox: Sandbox;
  let redis: TestRedis;
  /** One by the clock of the machine, one ahead of it. */
  let both: readonly [GatewayProcess, GatewayProcess];
  beforeAll(async () => {
    sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' });
    redis = await startRedis();
    const env = { ...environmentFor(sandbox), CACHE_URL: redis.url };
    both = await Promise.all([spawnGateway(env), spawnGateway({ ...env, ...clockAhead(apartMs) })]);
  }, 60_000);
  afterAll(async () => {
    await Promise.all(both?.map((each) => each.stop()) ?? []);
    await Promise.all([sandbox.stop(), redis.stop()]);
  });
  beforeEach(() => sandbox.control.setLatency(0));

  const addTaxpayer = () => {
    const { id } = sandbox.control.addTaxpayer({ status: 'AUTHORIZED' });
    const { jobId } = sandbox.control.addJob({ taxpayerId: id, endsAs: null });
    return { id, job: jobId };
  };
  const calls = (id: string) => sandbox.control.tokenCalls(id);

  it('really are', async () => {
    const [one, two] = await Promise.all(both.map((each) => read(each, addTaxpayer().id)));
    const [early, late] = [one, two].map((each) => Date.parse(each?.data?.taxpayerToken.fetchedAt ?? ''));
    expect(Math.abs(Number(late) - Number(early) - apartMs)).toBeLessThan(30_000);
  });

  it('fetch a token once that both need at once, also when that takes longer than a lease lasts', async () => {
    const { id, job } = addTaxpayer();
    sandbox.control.setLatency(3500);
    const answers = await Promise.all(both.map((each) => readJob(each, id, job)));
    expect(codesOf(answers)).toEqual([]);
    expect(calls(id)).toBe(1);
  }, 30_000);

  it('replace a refused token once', async () => {
    const { id, job } = addTaxpayer();
    for (const each of both) await readJob(each, id, job);
    sandbox.control.rotateToken(id);
    const others = [addTaxpayer, addTaxpayer].map(() => sandbox.control.addJob({ taxpayerId: id, endsAs: null }).jobId);
    const answers = await Promise.all(both.map((each, n) => readJob(each, id, others[n] ?? job)));
    expect(codesOf(answers)).toEqual([]);
    expect(calls(id)).toBe(2);
  });

  it('show a record for one call, however often they are asked', async () => {
    const { id } = addTaxpayer();
    for (let round = 0; round < 5; round++) {
      expect(codesOf(await Promise.all(both.map((each) => read(each, id))))).toEqual([]);
    }
    expect(calls(id)).toBe(1);
  });

  it.each([
    ['behind', 0],
    ['ahead', 1],
  ] as const)('create one link for a key, begun by the one %s and waited for by the other', async (_, first) => {
    const { control } = sandbox;
    control.resetCounters();
    control.arm({ endpoint: 'createClientLink', fault: { gate: 'slow' }, times: 1 });
    const begun = createLink(both[first], `key-${first}`);
    await control.whenCalled('createClientLink', 1);
    const waiting = createLink(both[1 - first] as GatewayProcess, `key-${first}`);
    const early = await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 700, 'still waiting'))]);
    expect(early).toBe('still waiting');
    control.release('slow');
    const [made, given] = await Promise.all([begun, waiting]);
    expect(codesOf([made, given])).toEqual([]);
    expect(given.data?.createClientLink.clientLink.id).toBe(made.data?.createClientLink.clientLink.id);
    expect(control.counters().createClientLink).toBe(1);
  });

  it('call a service that asked for silence once', async () => {
    const taxpayers = Array.from({ length: 6 }, addTaxpayer);
    const fault = { status: 429, headers: { 'Retry-After': '20' } } as const;
    sandbox.control.arm({ endpoint: 'taxpayerToken', fault, times: 100 });
    for (const { id } of taxpayers) {
      const answers = await Promise.all(both.map((each) => read(each, id)));
      expect(codesOf(answers)).toEqual(['UPSTREAM_RATE_LIMITED', 'UPSTREAM_RATE_LIMITED']);
    }
    expect(taxpayers.reduce((sum, { id }) => sum + calls(id), 0)).toBe(1);
  });
});
