import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Quota } from '../../../src/admission/Quota.js';
import { anyone, type Caller, router } from '../../../src/auth/caller.js';
import { SealedStore } from '../../../src/cache/SealedStore.js';
import { Sealer } from '../../../src/cache/sealing.js';
import { Secret } from '../../../src/config/secret.js';
import type { GatewayError } from '../../../src/errors/errors.js';
import { LocalStore } from '../../../src/stores/LocalStore.js';
import { type Answer, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { until } from '../../support/until.js';

const ada: Caller = { ...anyone, kind: 'bearer', key: 'ada' };
const bob: Caller = { ...anyone, kind: 'bearer', key: 'bob' };
const minuteBegins = 60_000_000;
let now = minuteBegins;
const limits: Quota[] = [];
let gateway: TestGateway | undefined;

afterEach(async () => {
  for (const limit of limits.splice(0)) limit.stop();
  await gateway?.stop();
  gateway = undefined;
});

function process(store: SealedStore, perMinute = 5): Quota {
  const limit = new Quota({ store, perMinute });
  limits.push(limit);
  return limit;
}

function sharedStore(): SealedStore {
  const sealer = new Sealer([{ from: 'client-secret', secret: new Secret('x') }]);
  return new SealedStore({ store: new LocalStore(), sealer, scope: [] });
}

/** How many of that many operations get through. */
function admitted(limit: Quota, caller: Caller, operations: number, address?: string): number {
  return Array.from({ length: operations }).filter(() => refusal(limit, caller, address) === undefined).length;
}

function refusal(limit: Quota, caller: Caller, address?: string): GatewayError | undefined {
  try {
    limit.admit({ caller, remoteAddress: address });
    return undefined;
  } catch (error) {
    return error as GatewayError;
  }
}

describe('the limit of operations per caller', () => {
  beforeEach(() => {
    now = minuteBegins;
    jest.spyOn(Date, 'now').mockImplementation(() => now);
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  test('lets that many through in a clock minute, and says when the next begins', () => {
    const limit = process(sharedStore());
    now += 12_500;
    expect(admitted(limit, ada, 9)).toBe(5);
    expect(admitted(limit, bob, 9)).toBe(5);
    expect(refusal(limit, ada)).toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterSeconds: 48,
      httpStatus: 429,
      message: 'At most 5 root fields per minute (RATE_LIMIT_PER_MINUTE)',
    });
    now += 47_500;
    expect(admitted(limit, ada, 9)).toBe(5);
  });

  test('holds over all processes, once they have heard of each other', async () => {
    const store = sharedStore();
    const [one, two] = [process(store), process(store)];
    expect(admitted(one, ada, 4)).toBe(4);
    await until(async () => (await store.increment(['rate', 'ada', String(now / 60_000)], 0, 1000)).count === 4);
    expect(admitted(two, ada, 1)).toBe(1); // asks what the others have counted
    await until(() => refusal(two, ada) !== undefined);
    expect(admitted(two, bob, 9)).toBe(5);
  });

  test('holds within each process while the store is away', async () => {
    const store = sharedStore();
    store.increment = () => Promise.reject(new Error('away'));
    const limit = process(store);
    expect(admitted(limit, ada, 3)).toBe(3);
    await Promise.resolve();
    expect(admitted(limit, ada, 9)).toBe(2);
  });

  test('tells the store later what it could not be told', async () => {
    const store = sharedStore();
    const add = store.increment.bind(store);
    store.increment = () => Promise.reject(new Error('away'));
    const limit = process(store);
    expect(admitted(limit, ada, 3)).toBe(3);
    await new Promise(setImmediate);
    store.increment = add;
    expect(admitted(limit, ada, 1)).toBe(1);
    await until(async () => (await add(['rate', 'ada', String(now / 60_000)], 0, 120_000)).count === 4);
  });

  test('tells callers without an identity apart by address, and those with one by who they are', () => {
    const limit = process(sharedStore());
    expect(admitted(limit, anyone, 9, '192.0.2.1')).toBe(5);
    expect(admitted(limit, anyone, 9, '192.0.2.2')).toBe(5);
    expect(admitted(limit, router, 9, '192.0.2.1')).toBe(5);
    expect(admitted(limit, router, 9, '192.0.2.2')).toBe(0);
  });
});

describe('a document with many root fields', () => {
  const fields = (count: number) => `{ ${Array.from({ length: count }, (_, n) => `a${n}: __typename`).join(' ')} }`;

  test('counts as that many documents with one, whatever executes it', async () => {
    gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '50' });
    const { query } = gateway;
    const left: number[] = [];
    for (let sent = 0; sent < 5; sent += 1) {
      const { headers } = await query(fields(5));
      left.push(Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]));
    }
    const counted = left.slice(1).map((after, at) => Number(left[at]) - after);
    expect(counted.filter((count) => count === 5).length).toBeGreaterThanOrEqual(3); // in one another minute may have begun
  });

  test('is refused when more is asked for than is left, on every transport', async () => {
    gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '10' });
    const { status, errors } = await gateway.query(fields(11));
    expect([status, errors?.[0]?.extensions.code]).toEqual([429, 'RATE_LIMITED']);
    const stream = await fetch(`${gateway.origin}/graphql/stream?query=${encodeURIComponent(fields(11))}`, {
      headers: { accept: 'text/event-stream', 'apollo-require-preflight': 'yes' },
    });
    expect(await stream.text()).toContain('RATE_LIMITED');
    expect((await gateway.query(fields(5))).status).toBe(200); // what was refused has not used up the limit
  });
});

describe('the headers of an answer', () => {
  const limits = ({ headers }: Answer | Response) => [headers.get('ratelimit-policy'), headers.get('ratelimit')];

  test('say what is left of the limit, on every answer over HTTP of a caller who is known', async () => {
    const perMinute = 1000;
    gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: `${perMinute}` });
    const { origin } = gateway;
    const answers: (Answer | Response)[] = [
      await gateway.query('{ __typename }'),
      await gateway.query('{ nonsense }'),
      await fetch(`${origin}/graphql/stream?query={__typename}`, { headers: { accept: 'text/event-stream' } }),
      await fetch(`${origin}/graphql`, { method: 'POST' }),
    ];
    const left = answers.map((answer) => {
      const [policy, limit] = limits(answer);
      expect(policy).toBe('"root-fields";q=1000;w=60');
      const [, r, t] = /^"root-fields";r=(\d+);t=(\d+)$/.exec(limit ?? '') ?? [];
      expect(Number(t)).toBeGreaterThan(0);
      expect(Number(t)).toBeLessThanOrEqual(60);
      return Number(r);
    });
    expect(left[0]).toBe(perMinute - 1);
    expect([perMinute - 2, perMinute - 1]).toContain(left[1]); // another minute may have begun
  });

  test('say when operations are let through again, and the error says which limit it was', async () => {
    gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '1' });
    let refused = await gateway.query('{ __typename }');
    while (refused.status !== 429) refused = await gateway.query('{ __typename }');
    const [error] = refused.errors ?? [];
    const seconds = error?.extensions.retryAfterSeconds;
    expect(error?.message).toContain('RATE_LIMIT_PER_MINUTE');
    expect(refused.headers.get('retry-after')).toBe(`${seconds}`);
    expect(limits(refused)[1]).toMatch(new RegExp(`^"root-fields";r=0;t=(${seconds}|${Number(seconds) - 1})$`));
  });

  test('are not there without a limit, which is the default where nobody authenticates', async () => {
    gateway = await startTestGateway();
    expect(limits(await gateway.query('{ __typename }'))).toEqual([null, null]);
  });
});
