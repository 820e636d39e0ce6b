import { setTimeout as sleep } from 'node:timers/promises';
import { environmentFor, type GatewayProcess, postQuery, spawnGateway } from '../../support/gateway.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { times } from '../../support/times.js';
import { together } from '../../support/together.js';
import { until } from '../../support/until.js';

const waiters = 200;
/** Longer than a lease that nobody renews. */
const longMs = 4500;
const tokenQuery = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { accessToken } }';

describe('processes over one Redis', () => {
  let sandbox: Sandbox;
  let redis: TestRedis;
  let others: readonly [GatewayProcess, GatewayProcess];

  beforeAll(async () => {
    [sandbox, redis] = await Promise.all([startSandbox(), startRedis()]);
    others = await Promise.all([start(), start()]);
  });

  function start() {
    const limits = { UPSTREAM_TIMEOUT_MS: '30000', UPSTREAM_DEADLINE_MS: '30000', RATE_LIMIT_PER_MINUTE: '0' };
    return spawnGateway({ ...environmentFor(sandbox), CACHE_URL: redis.url, ...limits });
  }

  const addTaxpayer = () => sandbox.addTaxpayer({ status: 'AUTHORIZED' });

  /** Asks the other processes in turn `waiters` times. */
  const ask = (variables: object) =>
    Promise.all(
      times(waiters, async (n) => {
        const { data, errors } = await postQuery<object>(others[n % 2]?.origin ?? '', tokenQuery, variables);
        expect(errors).toBeUndefined();
        expect(Object.values(data ?? {})).not.toContain(null);
      }),
    );

  const itMostlyWaits = together();

  itMostlyWaits('go on soon after a kill -9 of the one that was reading a token, with one more call', async () => {
    const holder = await start();
    const { id } = addTaxpayer();
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { gate: 'never' }, times: 1 });
    const lost = postQuery(holder.origin, tokenQuery, { id }).catch(() => 'lost');
    await until(() => sandbox.tokenCalls(id) === 1, 60_000);
    const answered = ask({ id });
    await sleep(longMs);
    expect(sandbox.tokenCalls(id)).toBe(1);
    await holder.kill();
    expect(await lost).toBe('lost');
    await answered;
    expect(sandbox.tokenCalls(id)).toBe(2);
  });

  itMostlyWaits('make one call to a service that takes three times as long as a lease lasts', async () => {
    const { id } = addTaxpayer();
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { delayMs: 2 * longMs }, times: 1 });
    await ask({ id });
    expect(sandbox.tokenCalls(id)).toBe(1);
  });

  itMostlyWaits('create one link for a key though that takes longer than a lease lasts', async () => {
    const mutation = 'mutation { createClientLink(input: { idempotencyKey: "key" }) { clientLink { id } replayed } }';
    type Created = { createClientLink: { clientLink: { id: string }; replayed: boolean } };
    sandbox.arm({ endpoint: 'createClientLink', fault: { delayMs: longMs }, times: 1 });
    const created = await Promise.all(others.map(({ origin }) => postQuery<Created>(origin, mutation)));
    const links = created.map(({ data }) => data?.createClientLink);
    expect(links[0]?.clientLink.id).toBe(links[1]?.clientLink.id);
    expect(links.map((link) => link?.replayed).sort()).toEqual([false, true]);
    expect(sandbox.counters().createClientLink).toBe(1);
  });

  itMostlyWaits(
    'keep what the next one read when the one before was paused in its call, which takes it over',
    async () => {
      const holder = await start();
      const { id } = addTaxpayer();
      const tokenOf = async ({ origin }: GatewayProcess) =>
        (await postQuery<{ taxpayerToken: { accessToken: string } }>(origin, tokenQuery, { id })).data?.taxpayerToken
          .accessToken;
      sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { gate: 'held' }, times: 1 });
      const late = tokenOf(holder);
      await until(() => sandbox.tokenCalls(id) === 1, 60_000);
      await sleep(1500); // renewed once
      holder.child.kill('SIGSTOP');
      sandbox.rotateToken(id);
      const [newer] = await Promise.all(others.map(tokenOf));
      sandbox.release('held');
      holder.child.kill('SIGCONT');
      await late; // the one that it was told itself
      await until(async () => (await tokenOf(holder)) === newer);
      expect(await tokenOf(await start())).toBe(newer);
      expect(sandbox.tokenCalls(id)).toBe(2);
    },
  );
});
