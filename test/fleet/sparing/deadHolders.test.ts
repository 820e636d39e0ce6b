import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { environmentFor, type GatewayProcess, postQuery, spawnGateway } from '../../support/gateway.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';

const waiters = 300;
const tokenQuery = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
const jobQuery = 'query ($id: ID!, $jobId: ID!) { refreshJob(taxpayerId: $id, jobId: $jobId) { status } }';

describe.each(['redis', 'lmdb'])('four processes over %s', (kind) => {
  let sandbox: Sandbox;
  let redis: TestRedis;
  let directory: string;
  let start: () => Promise<GatewayProcess>;
  let fleet: GatewayProcess[] = [];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'dead-holders-'));
    [sandbox, redis] = await Promise.all([
      startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' }),
      startRedis(),
    ]);
    const env = {
      ...environmentFor(sandbox),
      CACHE_URL: kind === 'redis' ? redis.url : `lmdb:${directory}`,
      UPSTREAM_TIMEOUT_MS: '15000',
      UPSTREAM_DEADLINE_MS: '15000',
    };
    start = () => spawnGateway(env);
    fleet = await Promise.all(Array.from({ length: 4 }, start));
  });
  afterEach(async () => {
    for (const { child } of fleet) child.kill('SIGCONT');
    await Promise.all(fleet.map((each) => each.stop()));
    await Promise.all([sandbox.stop(), redis.stop()]);
    await rm(directory, { recursive: true, force: true });
  });

  /** Asks `gateways` in turn `count` times. */
  const ask = (gateways: readonly GatewayProcess[], count: number, query: string, variables: object) =>
    Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const { origin } = gateways[n % gateways.length] as GatewayProcess;
        const { data, errors } = await postQuery<object>(origin, query, variables);
        expect(errors).toBeUndefined();
        expect(Object.values(data ?? {})).not.toContain(null);
      }),
    );

  it.each([
    ['token', 'taxpayerToken', tokenQuery],
    ['job', 'refreshJob', jobQuery],
  ] as const)(
    'go on within 3.5 s of a kill -9 of the one that was reading a %s, with one more call',
    async (_, endpoint, query) => {
      const [holder, ...others] = fleet as [GatewayProcess, ...GatewayProcess[]];
      const { id } = sandbox.control.addTaxpayer();
      const { jobId } = sandbox.control.addJob({ taxpayerId: id, endsAs: null });
      sandbox.control.arm({ endpoint, fault: { gate: 'never' }, times: 1 });
      const called = sandbox.control.whenCalled(endpoint, 1);
      const lost = postQuery(holder.origin, query, { id, jobId }).catch(() => 'lost');
      await called;
      const again = sandbox.control.whenCalled(endpoint, 2).then(() => performance.now());
      const answered = ask(others, waiters, query, { id, jobId });
      await sleep(4500); // longer than a lease that nobody renews
      expect(sandbox.control.counters()[endpoint]).toBe(1);
      await holder.kill();
      const killedAt = performance.now();
      expect(await lost).toBe('lost');
      await answered;
      const wentOnMs = (await again) - killedAt;
      expect(wentOnMs).toBeLessThanOrEqual(3500);
      expect(sandbox.control.counters()).toMatchObject({
        taxpayerToken: endpoint === 'taxpayerToken' ? 2 : 1,
        [endpoint]: 2,
      });
    },
    60_000,
  );

  it('make one call to a service that takes 10 s', async () => {
    const { id } = sandbox.control.addTaxpayer();
    sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { delayMs: 10_000 }, times: 1 });
    await ask(fleet, waiters, tokenQuery, { id });
    expect(sandbox.control.counters().taxpayerToken).toBe(1);
  }, 60_000);

  it('create one link for a key though that takes longer than a lease lasts', async () => {
    const mutation = 'mutation { createClientLink(input: { idempotencyKey: "key" }) { clientLink { id } replayed } }';
    type Created = { createClientLink: { clientLink: { id: string }; replayed: boolean } };
    sandbox.control.arm({ endpoint: 'createClientLink', fault: { delayMs: 4500 }, times: 1 });
    const answers = await Promise.all(fleet.map(({ origin }) => postQuery<Created>(origin, mutation)));
    const links = answers.map(({ data }) => data?.createClientLink);
    expect(new Set(links.map((link) => link?.clientLink.id)).size).toBe(1);
    expect(links.filter((link) => link?.replayed === false)).toHaveLength(1);
    expect(sandbox.control.counters().createClientLink).toBe(1);
  }, 60_000);

  it('keep what the next one read when the one before was paused in its call, which answers with that as well', async () => {
    const [holder, ...others] = fleet as [GatewayProcess, ...GatewayProcess[]];
    const query = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { accessToken } }';
    const tokenOf = async ({ origin }: GatewayProcess, id: string) =>
      (await postQuery<{ taxpayerToken: { accessToken: string } }>(origin, query, { id })).data?.taxpayerToken
        .accessToken;
    const { id } = sandbox.control.addTaxpayer();
    sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { gate: 'held' }, times: 1 });
    const called = sandbox.control.whenCalled('taxpayerToken', 1);
    const late = tokenOf(holder, id);
    await called;
    await sleep(1500); // renewed once
    holder.child.kill('SIGSTOP');
    sandbox.control.rotateToken(id);
    const [newer] = await Promise.all(others.map((each) => tokenOf(each, id)));
    sandbox.control.release('held');
    holder.child.kill('SIGCONT');
    expect(await late).toBe(newer);
    const newcomer = await start();
    fleet.push(newcomer);
    expect(await tokenOf(newcomer, id)).toBe(newer);
    expect(sandbox.control.counters().taxpayerToken).toBe(2);
  }, 60_000);
});
