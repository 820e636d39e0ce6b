import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Answer, environmentFor, type GatewayProcess, postQuery, spawnGateway } from '../../support/gateway.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { until } from '../../support/until.js';

interface Created {
  readonly createClientLink: { readonly clientLink: { readonly id: string }; readonly replayed: boolean };
}

describe('createClientLink with an idempotency key while Redis does not answer', () => {
  let sandbox: Sandbox;
  let redis: TestRedis;
  let gateways: readonly GatewayProcess[];
  let one: (key: string, name?: string) => Promise<string>;
  let two: (key: string, name?: string) => Promise<string>;

  beforeEach(async () => {
    [sandbox, redis] = await Promise.all([
      startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' }),
      startRedis(),
    ]);
    const env = { ...environmentFor(sandbox), CACHE_URL: redis.url };
    gateways = await Promise.all([spawnGateway(env), spawnGateway(env)]);
    const [first, second] = gateways as [GatewayProcess, GatewayProcess];
    one = (key, name) => create(first, key, name);
    two = (key, name) => create(second, key, name);
  });
  afterEach(async () => {
    redis.resume();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await Promise.all([redis.stop(), sandbox.stop()]);
  });

  const posts = () => sandbox.control.counters().createClientLink;

  /** `created` or `replayed` with the id of the link, or the code of the error. */
  async function create({ origin }: GatewayProcess, key: string, name = 'a name'): Promise<string> {
    const { data, errors }: Answer<Created> = await postQuery(
      origin,
      `mutation ($key: String!, $metadata: JSONObject) {
        createClientLink(input: { idempotencyKey: $key, metadata: $metadata }) { clientLink { id } replayed }
      }`,
      { key, metadata: { name } },
    );
    const error = errors?.[0]?.extensions;
    if (error) return error.code + (error.retryable ? ', again' : '');
    const { clientLink, replayed } = (data as Created).createClientLink;
    return `${replayed ? 'replayed' : 'created'} ${clientLink.id}`;
  }

  /** The outcome once the store answers again; each process notices that by itself. */
  async function afterwards(ask: () => Promise<string>): Promise<string> {
    let outcome = '';
    await until(async () => {
      outcome = await ask();
      return outcome !== 'UPSTREAM_UNAVAILABLE, again';
    });
    return outcome;
  }

  /** Pauses Redis while the service creates the link; release the gate `held` to let the service answer. */
  async function pauseRedisWhileCreating(key: string) {
    const fault = { gate: 'held' } as const;
    sandbox.control.arm({ endpoint: 'createClientLink', fault, times: 1 });
    const creating = one(key);
    await sandbox.control.whenCalled('createClientLink', 1);
    redis.pause();
    return { creating };
  }

  it('replays the link on the process that created it, refuses elsewhere, and never creates it twice', async () => {
    const created = await one('key-1');
    const link = created.replace('created ', '');
    redis.pause();
    expect(await one('key-1')).toBe(`replayed ${link}`);
    expect(await one('key-1', 'another name')).toBe('IDEMPOTENCY_CONFLICT');
    for (let n = 0; n < 3; n++) expect(await two('key-1')).toBe('UPSTREAM_UNAVAILABLE, again');
    redis.resume();
    expect(await afterwards(() => two('key-1'))).toBe(`replayed ${link}`);
    expect(posts()).toBe(1);
  });

  it('refuses a new key without calling the service; the key is still unused when Redis is back', async () => {
    redis.pause();
    const refused = await Promise.all([one('key-1'), one('key-1'), two('key-1'), one('key-2')]);
    expect(new Set(refused)).toEqual(new Set(['UPSTREAM_UNAVAILABLE, again']));
    expect(posts()).toBe(0);
    redis.resume();
    expect(await afterwards(() => one('key-1'))).toMatch(/^created /);
    expect(await afterwards(() => two('key-2'))).toMatch(/^created /);
    expect(posts()).toBe(2);
  });

  it('shares a link that was created during the outage once Redis is back', async () => {
    const { creating } = await pauseRedisWhileCreating('key-1');
    sandbox.control.release('held');
    const link = (await creating).replace('created ', '');
    expect(await one('key-1')).toBe(`replayed ${link}`);
    redis.resume();
    expect(await afterwards(() => two('key-1'))).toBe(`replayed ${link}`);
    expect(posts()).toBe(1);
  });

  it('answers OUTCOME_UNKNOWN when the process that created the link dies during the outage', async () => {
    const { creating } = await pauseRedisWhileCreating('key-1');
    for (const key of ['key-2', 'key-3', 'key-4']) await one(key); // the failures open the circuit: Redis is no longer asked
    sandbox.control.release('held');
    expect(await creating).toMatch(/^created /);
    await gateways[0]?.kill();
    redis.resume();
    expect(await afterwards(() => two('key-1'))).toBe('OUTCOME_UNKNOWN');
    expect(posts()).toBe(1);
  }, 60_000);

  it('allows a retry after a request that definitely failed during the outage', async () => {
    const { control } = sandbox;
    control.setLatency(700);
    control.arm({ endpoint: 'createClientLink', fault: { status: 422 }, times: 1 });
    const failing = one('key-1');
    await control.whenCalled('createClientLink', 1);
    redis.pause();
    expect(await failing).toBe('UPSTREAM_REJECTED');
    expect(await one('key-1')).toBe('UPSTREAM_UNAVAILABLE, again');
    redis.resume();
    expect(await afterwards(() => one('key-1'))).toMatch(/^created /);
    expect(posts()).toBe(2);
  });

  it('still replays on the process that created the link after Redis lost its data', async () => {
    const link = (await one('key-1')).replace('created ', '');
    await redis.kill();
    await redis.restart();
    expect(await one('key-1')).toBe(`replayed ${link}`);
    expect(posts()).toBe(1);
  });
});
