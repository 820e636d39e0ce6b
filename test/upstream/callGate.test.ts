import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import type { Store } from '../../src/stores/Store.js';
import { CallGate } from '../../src/upstream/CallGate.js';
import type { Endpoint } from '../../src/upstream/ResilientFetch.js';
import { replacePlatform, restorePlatform } from '../support/platform.js';

const clockIs = (now: () => number) => replacePlatform(() => ({ now, monotonicNow: now }));
afterEach(restorePlatform);
const sealedOn = (store: Store) => {
  const sealer = new Sealer({ from: 'client-secret', secret: new Secret('gate-secret') });
  return new SealedStore({ store, sealer, scope: [] });
};

type Asked = readonly (number | undefined)[];
const oneByOne = async (gates: readonly CallGate[], asked: Asked) => {
  for (const [n, gate] of gates.entries()) await gate.closeForRateLimit('taxpayerToken', 'any', asked[n]);
};
const atOnce = (gates: readonly CallGate[], asked: Asked) =>
  Promise.all(gates.map((gate, n) => gate.closeForRateLimit('taxpayerToken', 'any', asked[n])));

it.each([
  ['one after the other', oneByOne],
  ['at the same time', atOnce],
])('keeps the longest silence for all processes when several are answered with 429, %s', async (_, close) => {
  const orders: readonly Asked[] = [
    [7, undefined, 6],
    [undefined, 7, 6],
    [6, undefined, 7],
  ];
  for (const asked of orders) {
    let ms = 0;
    clockIs(() => ms);
    const store = new MemoryStore();
    const newGate = () => new CallGate({ store: sealedOn(store), onClosed: () => {} });
    const told = asked.map(newGate);
    await close(told, asked);
    const gates = [...told, newGate()];
    ms = 6999;
    for (const gate of gates) {
      await expect(gate.pass('taxpayerToken', 'any')).rejects.toMatchObject({ code: 'UPSTREAM_RATE_LIMITED' });
      await gate.pass('refreshJob', 'any');
    }
    ms = 7000;
    for (const gate of gates) await gate.pass('taxpayerToken', 'any');
  }
});

it('writes the longest silence, and few others, when many calls of a process are answered with 429 at the same time', async () => {
  let ms = 0;
  clockIs(() => ms);
  const asked: string[] = [];
  const store = new Proxy(new MemoryStore(), {
    get(target, name) {
      const member = target[name as keyof MemoryStore];
      if (typeof member !== 'function') return member;
      asked.push(String(name));
      return (member as () => unknown).bind(target);
    },
  });
  const gate = new CallGate({ store: sealedOn(store), onClosed: () => {} });
  const closing = Array.from({ length: 50 }, () => {
    ms += 1;
    return gate.closeForRateLimit('taxpayerToken', 'any', 7);
  });
  await Promise.all(closing);
  expect(asked.filter((name) => name === 'settle').length).toBeLessThanOrEqual(2);
  expect(asked.length).toBeLessThan(150);
  ms = 7049;
  await expect(gate.pass('taxpayerToken', 'any')).rejects.toMatchObject({ code: 'UPSTREAM_RATE_LIMITED' });
});

describe('A gate that is closed', () => {
  let ms: number;
  let closed: unknown[];
  let sealed: SealedStore;
  let gate: CallGate;
  beforeEach(() => {
    [ms, closed] = [1_000_000, []];
    clockIs(() => ms);
    sealed = sealedOn(new MemoryStore());
    gate = new CallGate({ store: sealed, onClosed: (...which) => closed.push(which) });
  });
  const refusalOf = (endpoint: Endpoint, credential = 'mine') =>
    gate.pass(endpoint, credential).then(
      () => undefined,
      (error) => error,
    );

  it.each([
    [undefined, 5],
    [0, 1],
    [3, 3],
  ])(
    'by a 429 with Retry-After %p is closed for %i s, for these credentials and this endpoint',
    async (asked, seconds) => {
      const told = await gate.closeForRateLimit('taxpayerToken', 'mine', asked);
      const expected = {
        code: 'UPSTREAM_RATE_LIMITED',
        message: 'The service asked for fewer calls',
        reason: 'HTTP 429',
      };
      expect(told).toMatchObject({ ...expected, retryAfterSeconds: seconds });
      ms += 1000 * seconds - 1;
      expect(await refusalOf('taxpayerToken')).toMatchObject({ ...expected, retryAfterSeconds: 1 });
      expect(await refusalOf('taxpayerToken', 'new')).toBeUndefined();
      expect(await refusalOf('refreshJob')).toBeUndefined();
      ms += 1;
      expect(await refusalOf('taxpayerToken')).toBeUndefined();
      expect(closed).toEqual([['taxpayerToken', 'rate-limited']]);
    },
  );

  it.each([
    [401, ['taxpayerToken', 'createClientLink']],
    [403, ['createClientLink']],
  ] as const)('by a %i is closed for 30 s: %j', async (status, endpoints) => {
    const told = await gate.closeForCredentials('createClientLink', 'mine', status);
    const expected = { code: 'UPSTREAM_CREDENTIALS_REJECTED', reason: 'HTTP 401, or 403 to several callers' };
    expect(told).toMatchObject(expected);
    ms += 29_999;
    for (const endpoint of ['taxpayerToken', 'createClientLink', 'refreshJob'] as const) {
      const isClosed = (endpoints as readonly Endpoint[]).includes(endpoint);
      const refusal = await refusalOf(endpoint);
      if (isClosed) expect(refusal).toMatchObject(expected);
      else expect(refusal).toBeUndefined();
    }
    ms += 1;
    for (const endpoint of endpoints) expect(await refusalOf(endpoint)).toBeUndefined();
    expect(closed).toEqual(endpoints.map((endpoint) => [endpoint, 'credentials-rejected']));
  });

  it('is open when the mark is none that it writes', async () => {
    await sealed.setMark(['gate', 'taxpayerToken', 'mine'], { reason: 'somebody says so', until: ms + 1000 }, 1000);
    expect(await refusalOf('taxpayerToken')).toBeUndefined();
  });
});
