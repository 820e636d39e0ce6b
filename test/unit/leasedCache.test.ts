import { jest } from '@jest/globals';
import { isYoungerThan } from '../../src/cache/Entry.js';
import { LeasedCache } from '../../src/cache/LeasedCache.js';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/Sealer.js';
import { loadConfig } from '../../src/config/config.js';
import { GatewayError } from '../../src/errors/errors.js';
import { pause } from '../../src/process/pause.js';
import { LocalStore } from '../../src/stores/LocalStore.js';
import type { Store } from '../../src/stores/Store.js';
import { StoreError } from '../../src/stores/StoreError.js';
import { SharedStore } from '../support/stores/SharedStore.js';
import { times } from '../support/times.js';

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] }));
afterEach(() => void jest.useRealTimers());

type Leases = Pick<Store, 'acquire' | 'settle'>;

/** The cache of one process, and what it has kept so far. `changes`: how the process sees the store. */
function processOn(store: Store, changes: Partial<Leases> = {}) {
  const seen: Store = Object.assign(Object.create(store), {
    acquire: (...wish) => (changes.acquire ?? store.acquire).apply(store, wish),
    settle: (...outcome) => (changes.settle ?? store.settle).apply(store, outcome),
    forget: (record) => store.forget(record),
    note: async () => undefined,
  } satisfies Leases & Pick<Store, 'forget' | 'note'>);
  const kept: string[] = [];
  const sealed = new SealedStore({
    ...{ store: seen, sealer: new Sealer(loadConfig({})) },
    ...{ UPSTREAM_BASE_URL: '', UPSTREAM_CLIENT_ID: '', UPSTREAM_API_VERSION: '' },
  });
  const cache = new LeasedCache<string>({
    store: sealed,
    ...{ kind: 'token', memoryBytes: 1_000_000, workMs: 60_000, ttlMs: () => 3_600_000 },
    codec: { encode: String, decode: String },
    calls: { run: async (_, work) => work() },
    idsOf: (id) => [id],
    onKept: (_id, { value }) => kept.push(value),
    onRead: () => {},
  });
  /** A read that takes nothing, or whatever, that was fetched before. */
  const reader = (takesAny: boolean) => async (fetch: () => Promise<string>) =>
    (await cache.read('id', { acceptable: () => takesAny, fetch })).value;
  return { cache, kept, read: reader(false), readAny: reader(true), sealed };
}

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);
const away = async () => {
  throw new StoreError('unreachable');
};

it('A store that gives again what was refused, or a failure that nobody waits for, is done without', async () => {
  const stored = { version: 'x', value: Buffer.of(), ageMs: 60_000 };
  for (const answer of [
    { state: 'found', stored },
    { state: 'failed', failure: Buffer.of() },
  ] as const) {
    const { read } = processOn(new LocalStore(), { acquire: async () => answer });
    expect(await read(async () => 'fetched')).toBe('fetched');
  }
});

it('A lease that never ends is waited for as long as two works and two seconds', async () => {
  const { read } = processOn(new LocalStore(), { acquire: async () => ({ state: 'held', owner: 'x' }) });
  const reading = read(async () => 'own').catch(({ code }) => code);
  await pass(121_900);
  expect(await Promise.race([reading, 'still waiting'])).toBe('still waiting');
  await pass(300);
  expect(await Promise.race([reading, 'still waiting'])).toBe('UPSTREAM_TIMEOUT');
});

it('A store is asked once for something newer than what memory has', async () => {
  const store = new LocalStore();
  const acquire = jest.fn<Store['acquire']>((...wish) => store.acquire(...wish));
  const { read } = processOn(store, { acquire });
  await read(async () => 'first');
  await pass(1);
  expect(await read(async () => 'second')).toBe('second');
  expect(acquire).toHaveBeenCalledTimes(2);
});

it('A process that stood still gives its own, and a second later what another has fetched since', async () => {
  const store = new SharedStore();
  const changes: Partial<Leases> = {};
  const still = processOn(store, changes);
  const another = processOn(store);
  const reading = still.read(() => pause(10_000).then(() => 'older'));
  changes.acquire = away; // it renews its lease no more
  await pass(4000);
  expect(await another.read(async () => 'newer')).toBe('newer');
  delete changes.acquire;
  jest.setSystemTime(Date.now() + 5000); // their clocks differ
  await pass(6000);
  expect(await reading).toBe('older');
  await pass(1000);
  expect(still.kept).toEqual(['older', 'newer']);
  expect(still.cache.inMemory('id')?.fetchedAt).toBe(another.cache.inMemory('id')?.fetchedAt);
});

it('A store that loses each lease is asked again each second, for all reads together', async () => {
  const acquire = jest.fn<Store['acquire']>(async () => ({ state: 'taken', now: 0 }));
  const { read } = processOn(new LocalStore(), { acquire, settle: async () => false });
  expect(await read(async () => 'fetched')).toBe('fetched');
  expect(acquire).toHaveBeenCalledTimes(1);
  await pass(1);
  await read(async () => 'again');
  await pass(3000);
  expect(acquire).toHaveBeenCalledTimes(5);
});

it('An entry whose write is lost is written back under the lease that is still there, and others make no call', async () => {
  const store = new SharedStore();
  const changes: Partial<Leases> = { settle: away };
  const one = processOn(store, changes);
  expect(await one.read(async () => 'first')).toBe('first');
  delete changes.settle;
  const waiting = processOn(store).read(async () => 'second');
  await pass(1500);
  expect(await Promise.race([waiting, 'still waiting'])).toBe('first');
});

it('An entry under a lease that was granted unheard is stored', async () => {
  const store = new SharedStore();
  const changes: Partial<Leases> = {};
  const one = processOn(store, changes);
  changes.acquire = (...wish) => {
    delete changes.acquire;
    return store.acquire(...wish).then(away);
  };
  await one.read(async () => 'first');
  expect(await processOn(store).readAny(async () => 'second')).toBe('first');
});

it('What is written back tells of a newer entry that the store has by then', async () => {
  const store = new SharedStore();
  const changes: Partial<Leases> = { acquire: away, settle: away };
  const one = processOn(store, changes);
  expect(await one.read(async () => 'old')).toBe('old');
  await pass(500);
  expect(await processOn(store).read(async () => 'new')).toBe('new');
  delete changes.acquire;
  delete changes.settle;
  await pass(1000);
  expect(one.kept).toEqual(['old', 'new']);
});

it('What the store did not take for half an hour is not offered any more: it may have forgotten what it forgot', async () => {
  const store = new SharedStore();
  const acquire = jest.fn(away);
  const one = processOn(store, { acquire, settle: away });
  await one.read(async () => 'value');
  await pass(1_790_000);
  expect(acquire.mock.calls.length).toBeGreaterThan(1700);
  acquire.mockClear();
  await pass(60_000);
  expect(acquire.mock.calls.length).toBeLessThanOrEqual(11);
});

it('What many reads have written in vain is offered again at 25 a second', async () => {
  const acquire = jest.fn(away);
  const { cache } = processOn(new LocalStore(), { acquire, settle: away });
  await Promise.all(times(100, (n) => cache.read(`${n}`, { acceptable: () => false, fetch: async () => 'value' })));
  acquire.mockClear();
  await pass(2010);
  expect(acquire).toHaveBeenCalledTimes(50);
});

it('The lease is renewed no more once its work has ended: that would erase a failure that others wait for', async () => {
  const store = new SharedStore();
  const asked: string[] = [];
  const failing = processOn(store, {
    acquire(...wish) {
      asked.push('acquire');
      return store.acquire(...wish);
    },
    async settle(...outcome) {
      asked.push('settle');
      await pause(5000);
      return store.settle(...outcome);
    },
  });
  const failure = new GatewayError('UPSTREAM_TIMEOUT', 'too slow');
  const reading = failing.read(() => pause(2500).then(() => Promise.reject(failure))).catch((error) => error);
  await pass(10_000);
  expect(await reading).toBe(failure);
  expect(asked).toEqual(['acquire', 'acquire', 'acquire', 'settle']);
});

it('A process that lost its lease to one that still fetches answers with its own entry, and shares it if the other fails', async () => {
  const store = new SharedStore();
  const changes: Partial<Leases> = {};
  const still = processOn(store, changes);
  const reading = still.read(() => pause(10_000).then(() => 'own'));
  changes.acquire = away; // it renews its lease no more
  await pass(4000);
  const failure = new GatewayError('UPSTREAM_TIMEOUT', 'slow');
  const slow = processOn(store)
    .read(() => pause(20_000).then(() => Promise.reject(failure)))
    .catch(({ message }) => message);
  delete changes.acquire;
  await pass(6100);
  expect(await Promise.race([reading, 'still waiting'])).toBe('own');
  await pass(20_000);
  expect(await slow).toBe('slow');
  expect(await processOn(store).readAny(async () => 'third')).toBe('own');
});

it('A refusal that concerns one caller is not the answer of other processes', async () => {
  const store = new SharedStore();
  const refusal = new GatewayError('RATE_LIMITED', 'a share', { onlyFor: { holder: 'alice' } });
  const refused = processOn(store).read(() => pause(100).then(() => Promise.reject(refusal)));
  const waiting = processOn(store).read(async () => 'fetched');
  const outcomes = Promise.all([refused.catch(({ code }) => code), waiting]);
  await pass(5000);
  expect(await outcomes).toEqual(['RATE_LIMITED', 'fetched']);
});

it('Memory keeps what was fetched later than what the store has', async () => {
  const changes: Partial<Leases> = {};
  const one = processOn(new SharedStore(), changes);
  await one.read(async () => 'old');
  await pass(1000);
  Object.assign(changes, { acquire: away, settle: away });
  await one.read(async () => 'new');
  delete changes.acquire;
  await pass(100);
  await expect(one.read(async () => Promise.reject(new GatewayError('UPSTREAM_TIMEOUT', 'x')))).rejects.toThrow('x');
  expect(one.cache.inMemory('id')?.value).toBe('new');
});

it.each(['is answered', 'fails'])(
  'A read that %s after its subject was forgotten does not end the lease of the next',
  async (end) => {
    const store = new SharedStore();
    let calls = 0;
    const fetch = async () => {
      calls += 1;
      const token = `T${calls}`;
      await pause(600);
      return token;
    };
    const [one, another] = [processOn(store), processOn(store)];
    const old = one.readAny(async () => {
      const token = await fetch();
      if (end === 'fails') throw new GatewayError('UPSTREAM_UNAVAILABLE', 'planted');
      return token;
    });
    const ended = old.catch(() => undefined);
    await pass(300);
    await one.sealed.forget({ id: 'request', subject: 'id' });
    await pass(50);
    one.cache.forget(() => true);
    const reads = [one.readAny(fetch)];
    await pass(end === 'fails' ? 100 : 400);
    reads.push(another.readAny(fetch));
    await pass(3000);
    await ended;
    expect(await Promise.all(reads)).toEqual(['T2', 'T2']);
    expect(calls).toBe(2);
  },
);

it('What is forgotten while it is written back is not kept again', async () => {
  const store = new SharedStore();
  const changes: Partial<Leases> = { acquire: away, settle: away };
  const one = processOn(store, changes);
  await one.read(async () => 'value');
  delete changes.acquire;
  changes.settle = (...outcome) => pause(50).then(() => store.settle(...outcome));
  await pass(1010);
  one.cache.forget(() => true);
  await pass(200);
  expect(one.cache.inMemory('id')).toBeUndefined();
});

it('An entry from the future is not young: the clock of the store was set back', () => {
  const entry = { version: 'x', value: 'x', readAt: performance.now() + 60_000, fetchedAt: 0, startedAt: 0 };
  expect(isYoungerThan(entry, 1000)).toBe(false);
});
