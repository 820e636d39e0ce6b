import { afterEach, describe, expect, it } from '@jest/globals';
import { keepLease, leaseMarginMs, leaseMs } from '../../src/cache/keepLease.js';
import { LeasedCache } from '../../src/cache/LeasedCache.js';
import type { EntryName } from '../../src/cache/OneKeyStore.js';
import type { LeasedCacheOptions, ReadRequest } from '../../src/cache/ReadRequest.js';
import { SealedStore } from '../../src/cache/SealedStore.js';
import type { Entry } from '../../src/cache/StoredEntries.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import { GatewayError } from '../../src/errors/errors.js';
import { Trail } from '../../src/observability/Trail.js';
import { pause } from '../../src/process/pause.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { leaseKeyOf, type Store } from '../../src/stores/Store.js';
import { restorePlatform } from '../support/platform.js';
import { VirtualTime } from '../support/VirtualTime.js';

const startsAt = 1_000_000;
const workMs = 1000;
const longestHoldMs = workMs + leaseMarginMs;
const skewMs = 1000;
const hour = 3_600_000;
const sealer = new Sealer({ from: 'client-secret', secret: new Secret('a-secret') });

/** What a reader asks, and what its fetch brings after how long. */
type Ask = Partial<ReadRequest<string>> & { brings?: string | Error; takesMs?: number; id?: string };

/** A read: how and when it ended, in milliseconds since the start; nothing of that while it is under way. */
interface Reading {
  value?: string;
  entry?: Entry<string>;
  error?: unknown;
  endedAt?: number;
}

/** Who answered the reads of an operation, in order. */
class NotingTrail extends Trail {
  readonly tiers: string[] = [];
  override read(from: Parameters<Trail['read']>[0]): void {
    this.tiers.push(from);
    super.read(from);
  }
}

const only = (value: string) => (entry: Entry<string>) => entry.value === value;
const none = () => false;
const settled = () => new Promise((resolve) => setImmediate(resolve));

afterEach(restorePlatform);

/** Processes over one store, in a time that passes only when it is told to. */
function scene() {
  const time = new VirtualTime(startsAt);
  time.install({ random: () => 1 }); // looks at a lease after 20, 60, 140, 300, 500, … ms
  const shared = new MemoryStore();
  const since = () => time.now - startsAt;
  const sealedOver = (store: Store) => new SealedStore({ store, sealer, scope: ['test'] });
  const sealed = sealedOver(shared);
  const x: EntryName = ['text', 'x'];

  /** `alter` answers in place of the store. */
  function processWith({
    alter = {},
    ...options
  }: Partial<LeasedCacheOptions<string>> & { alter?: Partial<Store> } = {}) {
    const calls: { method: string; args: readonly unknown[] }[] = [];
    const store = new Proxy<Store>(shared, {
      get: (target, method) => {
        const value = Reflect.get(alter, method) ?? Reflect.get(target, method);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          calls.push({ method: String(method), args });
          return value.apply(target, args);
        };
      },
    });
    const [reads, waits]: [unknown[][], unknown[][]] = [[], []];
    const cache = new LeasedCache<string>({
      kind: 'text',
      store: sealedOver(store),
      codec: { encode: (value) => value, decode: String },
      ttlMs: () => hour,
      maxEntries: 10,
      workMs,
      onRead: (...read) => reads.push(read),
      onLeaseWait: (...wait) => waits.push(wait),
      ...options,
    });
    /** Of each fetch: when it began, and what it was given. */
    const fetches: { at: number; before: string | undefined; signal: AbortSignal }[] = [];
    const begin = ({ brings = 'value', takesMs = 0, id = 'x', ...request }: Ask = {}): Reading => {
      const reading: Reading = {};
      const fetch = async (signal: AbortSignal, before?: Entry<string>) => {
        fetches.push({ at: since(), before: before?.value, signal });
        if (takesMs > 0) await pause(takesMs);
        if (brings instanceof Error) throw brings;
        return brings;
      };
      Promise.resolve(cache.read(id, { acceptable: () => true, fetch, ...request })).then(
        (entry) => Object.assign(reading, { entry, value: entry.value, endedAt: since() }),
        (error) => Object.assign(reading, { error, endedAt: since() }),
      );
      return reading;
    };
    const read = async (ask: Ask = {}): Promise<Reading> => {
      const reading = begin(ask);
      await settled();
      expect(reading.endedAt).toBeDefined();
      return reading;
    };
    const count = (method: keyof Store) => calls.filter((call) => call.method === method).length;
    const begunAt = () => fetches.map(({ at }) => at);
    return { cache, calls, count, reads, waits, fetches, begunAt, begin, read };
  }

  return {
    sealed,
    shared,
    sealedOver,
    x,
    processWith,
    now: () => time.now,
    pass: async (ms: number) => {
      await settled();
      await time.runUntil(time.now + ms);
    },
    /** Writes an entry as another process would. */
    put: (value: string, fetchedAt: number, name: EntryName = x) =>
      sealed.set(name, { version: `version of ${value}`, value, fetchedAt }, hour),
    stored: async (name: EntryName = x) => ((await sealed.look(name)) as Entry<string> | undefined)?.value,
    /** Takes the lease from whoever has it. */
    endLease: async (name: EntryName = x) => {
      const owner = await sealed.leaseOwner(name);
      expect(owner).toBeDefined();
      await sealed.release(name, owner as Buffer);
    },
  };
}

describe('What a process holds in memory', () => {
  it('is dropped as soon as the store would not keep it any longer, and not before', async () => {
    const { processWith, pass } = scene();
    const { cache, read } = processWith({ ttlMs: Number });
    await read({ id: 'short', brings: '1000' });
    await read({ id: 'long', brings: '5000' });
    await pass(999);
    cache.dropExpired();
    expect([cache.peek('short')?.value, cache.peek('long')?.value]).toEqual(['1000', '5000']);
    await pass(1);
    cache.dropExpired();
    expect([cache.peek('short')?.value, cache.peek('long')?.value]).toEqual([undefined, '5000']);
  });

  it.each([
    ['a second by default', {}, 1000],
    ['as much as is told', { skewMs: 50 }, 50],
  ])('is young until it has the age, and may be from a clock that is ahead by %s', (_, options, skew) => {
    const { processWith, now } = scene();
    const { cache } = processWith(options);
    const ofAge = (age: number) => ({ version: 'v', value: 'value', fetchedAt: now() - age });
    expect(cache.isYoungerThan(ofAge(299), 300)).toBe(true);
    expect(cache.isYoungerThan(ofAge(300), 300)).toBe(false);
    expect(cache.isYoungerThan(ofAge(-skew), 300)).toBe(true);
    expect(cache.isYoungerThan(ofAge(-skew - 1), 300)).toBe(false);
  });

  it('is not replaced by something older of the store, which is not taken for the newest known either', async () => {
    const { processWith, pass, put, now } = scene();
    const { cache, read, fetches } = processWith();
    await pass(500);
    await read({ brings: 'newer' });
    await put('older', now() - 1);
    await read({ acceptable: none, brings: new Error('no answer') });
    expect(cache.peek('x')?.value).toBe('newer');
    expect(fetches[1]?.before).toBe('newer');
  });

  it('is replaced by something of the same time, and by something newer', async () => {
    const { processWith, put, now } = scene();
    const { cache, read } = processWith();
    await read({ brings: 'first' });
    await put('second', now());
    await read({ acceptable: none, brings: new Error('no answer') });
    expect(cache.peek('x')?.value).toBe('second');
    await put('third', now() + 1);
    await read({ acceptable: none, brings: new Error('no answer') });
    expect(cache.peek('x')?.value).toBe('third');
  });

  it.each([
    [skewMs, 'ahead'],
    [skewMs + 1, 'older'],
  ])('that is %i ms ahead of our clock gives way to something older when that is too much', async (aheadMs, kept) => {
    const { processWith, put, now } = scene();
    const { cache, read } = processWith();
    await put('ahead', now() + aheadMs);
    await read();
    expect(cache.peek('x')?.value).toBe('ahead');
    await put('older', now());
    await read({ acceptable: none, brings: new Error('no answer') });
    expect(cache.peek('x')?.value).toBe(kept);
  });

  it('stays the very object that readers made their views of while the store has the same', async () => {
    const { processWith } = scene();
    const { cache, read } = processWith();
    const { entry } = await read();
    await read({ acceptable: none, brings: new Error('no answer') });
    expect(cache.peek('x')).toBe(entry);
    let asked = 0;
    const again = await read({ acceptable: () => ++asked > 1 });
    expect(again.entry).toBe(entry);
  });

  it('gives way to something older of the store that will do when it will not', async () => {
    const { processWith, put, now } = scene();
    const { cache, read, fetches } = processWith();
    await read({ brings: 'refused' });
    await put('older', now() - 1);
    expect((await read({ acceptable: only('older') })).value).toBe('older');
    expect(cache.peek('x')?.value).toBe('older');
    expect(fetches).toHaveLength(1);
  });

  it('stays when it will do after all, though the reader is answered something older', async () => {
    const { processWith, put, now } = scene();
    const { cache, read } = processWith();
    await read({ brings: 'held' });
    await put('older', now() - 1);
    let asked = 0;
    expect((await read({ acceptable: () => ++asked > 1 })).value).toBe('older');
    expect(cache.peek('x')?.value).toBe('held');
  });

  it('gives way to what was fetched, also when it bears a later time', async () => {
    const { processWith, put, now } = scene();
    const { cache, read } = processWith();
    await put('ahead', now() + 500);
    await read();
    await read({ acceptable: only('fetched'), brings: 'fetched' });
    expect(cache.peek('x')?.value).toBe('fetched');
  });

  it('is nothing when there is no room for it: then it is answered, and told to the next fetch, all the same', async () => {
    const { processWith, put, now } = scene();
    const { cache, read, fetches } = processWith({ maxBytes: 1 });
    await put('too large', now());
    expect((await read({ acceptable: only('too large') })).value).toBe('too large');
    expect(cache.peek('x')).toBeUndefined();
    await read({ acceptable: only('another'), brings: 'another' });
    expect(fetches[0]?.before).toBe('too large');
  });
});

describe('The newest entry known', () => {
  it('is told to the fetch when memory alone still has it', async () => {
    const { processWith, pass, stored } = scene();
    const { read, fetches } = processWith({ ttlMs: () => 10 });
    await read({ brings: 'old' });
    await pass(10);
    expect(await stored()).toBeUndefined();
    await read({ acceptable: none });
    expect(fetches.map(({ before }) => before)).toEqual([undefined, 'old']);
  });

  it('is told to the fetch when memory dropped it for another meanwhile', async () => {
    const { processWith, pass, sealed, shared, x } = scene();
    const acquire: Store['acquire'] = async (key, ...rest) => {
      if (key === sealed.stores[0]?.keyOf(x)) await pause(10);
      return shared.acquire(key, ...rest);
    };
    const { cache, read, begin, fetches } = processWith({ maxEntries: 1, alter: { acquire } });
    begin({ brings: 'old' });
    await pass(11);
    await sealed.set(x, 'foreign', hour);
    begin({ acceptable: none });
    await read({ id: 'y' });
    expect(cache.peek('x')).toBeUndefined();
    await pass(21);
    expect(fetches.map(({ before }) => before)).toEqual([undefined, undefined, 'old']);
  });
});

describe('A read tells who answered it and what memory had', () => {
  it('when it fetches, and when memory has the answer', async () => {
    const { processWith } = scene();
    const { read, reads } = processWith();
    const trail = new NotingTrail();
    await read({ trail });
    expect(reads).toEqual([['text', 'fetched', 'absent']]);
    await read({ trail });
    expect(reads.slice(1)).toEqual([['text', 'memory', 'held']]);
    await read({ trail, acceptable: none });
    expect(reads.slice(2)).toEqual([['text', 'fetched', 'outdated']]);
    expect(trail.tiers).toEqual(['fetched', 'fetched']);
  });

  it('when it fetches because what the store has is outdated', async () => {
    const { processWith, put, now } = scene();
    const { read, reads } = processWith();
    await put('old', now());
    await read({ acceptable: only('new'), brings: 'new' });
    expect(reads).toEqual([['text', 'fetched', 'outdated']]);
  });

  it('when the store has the answer', async () => {
    const { processWith, pass } = scene();
    const [first, second] = [processWith(), processWith()];
    const trail = new NotingTrail();
    await first.read({ brings: 'old' });
    await second.read({ trail });
    expect(second.reads).toEqual([['text', 'store', 'absent']]);
    await pass(1);
    await first.read({ acceptable: only('new'), brings: 'new' });
    await second.read({ trail, acceptable: only('new') });
    expect(second.reads.slice(1)).toEqual([['text', 'store', 'outdated']]);
    expect(trail.tiers).toEqual(['store', 'store']);
    expect(second.fetches).toEqual([]);
  });

  it('when it waited for another process', async () => {
    const { processWith, pass } = scene();
    const [first, second] = [processWith(), processWith()];
    const trail = new NotingTrail();
    first.begin({ takesMs: 100, brings: 'old' });
    await settled();
    const waiting = second.begin({ trail });
    await pass(150);
    expect(waiting).toMatchObject({ value: 'old', endedAt: 140 });
    expect(second.reads).toEqual([['text', 'waited', 'absent']]);
    first.begin({ acceptable: only('new'), takesMs: 100, brings: 'new' });
    await settled();
    const again = second.begin({ trail, acceptable: only('new') });
    await pass(150);
    expect(again).toMatchObject({ value: 'new', endedAt: 290 });
    expect(second.reads.slice(1)).toEqual([['text', 'waited', 'outdated']]);
    expect(trail.tiers).toEqual(['waited', 'waited']);
    expect(second.fetches).toEqual([]);
  });

  it('when it joined another in this process', async () => {
    const { processWith, pass } = scene();
    const { begin, reads } = processWith();
    const [own, joined] = [new NotingTrail(), new NotingTrail()];
    begin({ trail: own, takesMs: 100 });
    begin({ trail: joined });
    await pass(101);
    expect([own.tiers, joined.tiers]).toEqual([['fetched'], ['shared']]);
    expect(reads).toEqual([['text', 'fetched', 'absent']]);
  });

  it('to nobody when nobody wants to know', async () => {
    const { processWith, pass, x, sealed } = scene();
    const nobody = { onRead: undefined, onLeaseWait: undefined } as unknown as Partial<LeasedCacheOptions<string>>;
    const [first, second, third] = [processWith(nobody), processWith(nobody), processWith(nobody)];
    const fetched = first.begin({ takesMs: 100 });
    await settled();
    const [waited, joined] = [second.begin(), first.begin()];
    await pass(150);
    const rest = [await third.read(), await third.read()];
    expect([fetched, waited, joined, ...rest].map(({ value }) => value)).toEqual(Array(5).fill('value'));
    expect(first.fetches).toHaveLength(1);
    expect(await sealed.leaseOwner(x)).toBeUndefined();
  });
});

describe('Forgetting a subject', () => {
  const subjectOf = (id: string) => id.split('/', 1)[0] as string;
  const nameOf = (id: string) => ({ subject: subjectOf(id), parts: ['text', id] });

  it('drops its entries and no others; forgetting all drops all', async () => {
    const { processWith, stored } = scene();
    const { cache, read } = processWith({ subjectOf });
    const ids = ['one/1', 'one/2', 'two/1'];
    const held = () => ids.filter((id) => cache.peek(id));
    for (const id of ids) await read({ id });
    expect(await stored(nameOf('one/1'))).toBe('value');
    cache.forget('one/1');
    expect(held()).toEqual(ids);
    cache.forget('one');
    expect(held()).toEqual(['two/1']);
    await read({ id: 'one/1' });
    cache.forget();
    expect(held()).toEqual([]);
  });

  it('drops the entry of that id when nobody says whom an entry is about', async () => {
    const { processWith } = scene();
    const { cache, read } = processWith();
    for (const id of ['x', 'y']) await read({ id });
    cache.forget('x');
    expect([cache.peek('x')?.value, cache.peek('y')?.value]).toEqual([undefined, 'value']);
  });

  it('keeps nothing of its fetch under way, and lets that of another subject be', async () => {
    const { processWith, pass } = scene();
    const { cache, begin, fetches } = processWith({ subjectOf });
    const readings = ['one/1', 'two/1'].map((id) => begin({ id, takesMs: 100 }));
    await settled();
    cache.forget('one');
    const trail = new NotingTrail();
    const joined = begin({ id: 'two/1', trail });
    await pass(101);
    expect([...readings, joined].map(({ value }) => value)).toEqual(['value', 'value', 'value']);
    expect([cache.peek('one/1')?.value, cache.peek('two/1')?.value]).toEqual([undefined, 'value']);
    expect(trail.tiers).toEqual(['shared']);
    expect(fetches).toHaveLength(2);
  });

  it('keeps nothing of any fetch under way when all is forgotten', async () => {
    const { processWith, pass } = scene();
    const { cache, begin } = processWith({ subjectOf });
    for (const id of ['one/1', 'two/1']) begin({ id, takesMs: 100 });
    await settled();
    cache.forget();
    await pass(101);
    expect([cache.peek('one/1'), cache.peek('two/1')]).toEqual([undefined, undefined]);
  });

  it('has the next reader fetch anew, whom later readers join, also after the end of the fetch before', async () => {
    const { processWith, pass, endLease } = scene();
    const { cache, begin, begunAt } = processWith({ subjectOf });
    const id = 'one/1';
    const before = begin({ id, takesMs: 100, brings: 'old' });
    await pass(10);
    await endLease(nameOf(id)); // as erasing does
    cache.forget('one');
    const after = begin({ id, takesMs: 200, brings: 'new' });
    await pass(140);
    expect(before).toMatchObject({ value: 'old', endedAt: 100 });
    expect(cache.peek(id)).toBeUndefined();
    const trail = new NotingTrail();
    const joined = begin({ id, trail, brings: 'fetched in vain' });
    await pass(100);
    expect(after).toMatchObject({ value: 'new', endedAt: 210 });
    expect(joined).toMatchObject({ value: 'new', endedAt: 210 });
    expect(trail.tiers).toEqual(['shared']);
    expect(begunAt()).toEqual([0, 10]);
    expect(cache.peek(id)?.value).toBe('new');
  });
});

describe('Readers of the same in one process', () => {
  it('share one fetch and its entry', async () => {
    const { processWith, pass } = scene();
    const { begin, begunAt } = processWith();
    const first = begin({ takesMs: 100 });
    await pass(50);
    const second = begin();
    await pass(51);
    expect(first).toMatchObject({ value: 'value', endedAt: 100 });
    expect(second).toEqual(first);
    expect(second.entry).toBe(first.entry);
    expect(begunAt()).toEqual([0]);
  });

  it('do not share an entry that will not do for one of them: it fetches itself', async () => {
    const { processWith, pass } = scene();
    const { begin, begunAt } = processWith();
    const trail = new NotingTrail();
    const first = begin({ takesMs: 100, brings: 'first' });
    const second = begin({ trail, acceptable: only('second'), takesMs: 100, brings: 'second' });
    await pass(201);
    expect(first).toMatchObject({ value: 'first', endedAt: 100 });
    expect(second).toMatchObject({ value: 'second', endedAt: 200 });
    expect(trail.tiers).toEqual(['fetched']);
    expect(begunAt()).toEqual([0, 100]);
  });

  it('share an error, which is not kept for later readers', async () => {
    const { processWith, pass } = scene();
    const { begin, read, begunAt } = processWith();
    const brings = new Error('no answer');
    const [first, second] = [begin({ takesMs: 100, brings }), begin()];
    await pass(101);
    expect([first.error, second.error]).toEqual([brings, brings]);
    expect(second.error).toBe(brings);
    expect(begunAt()).toEqual([0]);
    expect((await read()).value).toBe('value');
  });

  it('share what one holder is refused only with that holder', async () => {
    const { processWith, pass } = scene();
    const { begin, begunAt } = processWith();
    const brings = new GatewayError('UPSTREAM_UNAVAILABLE', 'refused', { onlyFor: { holder: 'one' } });
    const first = begin({ holder: 'one', takesMs: 100, brings });
    const [same, other, nobody] = [begin({ holder: 'one' }), begin({ holder: 'two', takesMs: 50 }), begin()];
    await pass(151);
    expect([first.error, same.error]).toEqual([brings, brings]);
    expect(other).toMatchObject({ value: 'value', endedAt: 150 });
    expect(nobody).toMatchObject({ value: 'value', endedAt: 150 });
    expect(begunAt()).toEqual([0, 100]);
  });
});

describe('A process that waits for another', () => {
  it('gets its failure without fetching', async () => {
    const { processWith, pass } = scene();
    const [first, second] = [processWith(), processWith()];
    const details = { retryAfterSeconds: 7, reason: 'planted' };
    first.begin({ takesMs: 100, brings: new GatewayError('UPSTREAM_UNAVAILABLE', 'It is away', details) });
    await settled();
    const waiting = second.begin();
    await pass(150);
    expect(waiting.error).toBeInstanceOf(GatewayError);
    expect(waiting.error).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', message: 'It is away', ...details });
    expect(waiting.endedAt).toBe(140);
    expect(second.fetches).toEqual([]);
    expect((await second.read()).value).toBe('value');
  });

  it('can read that failure for ten seconds', async () => {
    const { processWith, pass, sealed, x } = scene();
    const { begin } = processWith();
    begin({ takesMs: 1, brings: new GatewayError('UPSTREAM_UNAVAILABLE', 'It is away') });
    await settled();
    const owner = String(await sealed.leaseOwner(x));
    await pass(1 + 9999);
    expect(await sealed.failureOf(x, owner)).toMatchObject({ message: 'It is away' });
    await pass(2);
    expect(await sealed.failureOf(x, owner)).toBeUndefined();
  });

  it.each([
    [
      'what the caller there alone is refused',
      new GatewayError('UPSTREAM_UNAVAILABLE', 'refused', { onlyFor: { holder: 'one' } }),
    ],
    ['an error that is none of the gateway', new Error('a defect')],
  ])('does not get %s, and fetches', async (_, brings) => {
    const { processWith, pass, sealed, x } = scene();
    const [first, second] = [processWith(), processWith()];
    const failing = first.begin({ takesMs: 100, brings });
    await settled();
    const owner = String(await sealed.leaseOwner(x));
    const waiting = second.begin();
    await pass(150);
    expect(failing.error).toBe(brings);
    expect(waiting).toMatchObject({ value: 'value', endedAt: 140 });
    expect(second.begunAt()).toEqual([140]);
    expect(await sealed.failureOf(x, owner)).toBeUndefined();
  });

  it('tells how many seconds it waited', async () => {
    const { processWith, pass } = scene();
    const [first, second] = [processWith(), processWith()];
    first.begin({ takesMs: 1500 });
    await pass(200);
    second.begin();
    await pass(1301);
    expect(second.waits).toEqual([['text', 1.3]]);
    expect(first.waits).toEqual([]);
  });

  it('takes the place of one that never ends when no work lasts so long, and not before', async () => {
    const { processWith, pass, sealed, x } = scene();
    const { begin, begunAt, waits } = processWith({ workMs: 1200 });
    const longestMs = 1200 + leaseMarginMs;
    await sealed.acquire(x, 'dead', hour);
    const reading = begin();
    await pass(longestMs);
    expect(reading.endedAt).toBeUndefined();
    expect(await sealed.leaseOwner(x)).toEqual(Buffer.from('dead'));
    await pass(1);
    expect(reading).toMatchObject({ value: 'value', endedAt: longestMs });
    expect(begunAt()).toEqual([longestMs]);
    expect(waits).toEqual([['text', longestMs / 1000]]);
  });

  it('looks five times a second at most, and goes on when that one has ended', async () => {
    const { processWith, pass, endLease, sealed, x } = scene();
    const { begin, begunAt, count } = processWith();
    await sealed.acquire(x, 'slow', hour);
    const reading = begin();
    await pass(1201);
    expect(count('get')).toBe(8);
    await endLease();
    await pass(100);
    expect(reading).toMatchObject({ value: 'value', endedAt: 1300 });
    expect(begunAt()).toEqual([1300]);
  });

  it('notices that yet another has the lease by now', async () => {
    const { processWith, pass, sealed, shared, x } = scene();
    const { begin, waits } = processWith();
    await sealed.acquire(x, 'first', hour);
    begin();
    await pass(1250);
    const key = leaseKeyOf(sealed.stores[0]?.keyOf(x) as string);
    await shared.set(key, Buffer.from('second'), hour);
    await pass(49);
    expect(waits).toEqual([]);
    await pass(2);
    expect(waits).toEqual([['text', 1.3]]);
  });

  it('fails in time when the lease passes from one to another for ever', async () => {
    const { processWith, pass, shared } = scene();
    let owners = 0;
    const acquire: Store['acquire'] = async (key) => {
      const owner = Buffer.from(`owner-${++owners}`);
      await shared.set(leaseKeyOf(key), owner, 300);
      return { state: 'held', owner };
    };
    const { begin, fetches } = processWith({ alter: { acquire } });
    const reading = begin();
    await pass(10_000);
    expect(reading.error).toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
    expect(reading.endedAt).toBe(workMs + leaseMarginMs + workMs);
    expect(fetches).toEqual([]);
  });

  it('fetches when the other left something that is no entry', async () => {
    const { processWith, pass, sealed, x, endLease, stored } = scene();
    const { begin, fetches } = processWith();
    await sealed.acquire(x, 'other', hour);
    const reading = begin({ acceptable: only('value') });
    await settled();
    await sealed.set(x, 'foreign', hour);
    await endLease();
    await pass(50);
    expect(reading).toMatchObject({ value: 'value' });
    expect(fetches).toHaveLength(1);
    expect(await stored()).toBe('value');
  });
});

describe('What was fetched since a reader asked', () => {
  /** Reads while another process, which brings an entry of the given age, is at work; tells what is answered. */
  async function readWhile(takesFetchedMeanwhile: boolean | undefined, fetchedAt: number) {
    const { processWith, pass, put, sealed, x, endLease } = scene();
    const { begin } = processWith();
    await sealed.acquire(x, 'other', hour);
    await pass(5000);
    const option = takesFetchedMeanwhile === undefined ? {} : { takesFetchedMeanwhile };
    const reading = begin({ acceptable: none, brings: 'own', ...option });
    await pass(100);
    await put('brought', startsAt + fetchedAt);
    await endLease();
    await pass(50);
    return reading.value;
  }
  const [askedAt, lookedAt] = [5000, 5140];

  it.each([
    ['is taken', true, lookedAt, 'brought'],
    ['is taken from the moment on when it asked', true, askedAt, 'brought'],
    ['is not what was fetched before', true, askedAt - 1, 'own'],
    ['is taken from a clock as far ahead as clocks may be', true, lookedAt + skewMs, 'brought'],
    ['is not taken from a clock further ahead', true, lookedAt + skewMs + 1, 'own'],
    ['is not taken by a reader who did not say that it would do', undefined, lookedAt, 'own'],
    ['is not taken by a reader who said that it would not do', false, lookedAt, 'own'],
  ])('%s', async (_, takes, fetchedAt, answer) => {
    expect(await readWhile(takes, fetchedAt)).toBe(answer);
  });

  it.each([
    [true, 'first', [0]],
    [false, 'second', [0, 100]],
  ])('is taken (%s) of another reader in this process', async (takesFetchedMeanwhile, answer, begun) => {
    const { processWith, pass } = scene();
    const { begin, begunAt } = processWith();
    begin({ takesMs: 100, brings: 'first' });
    await pass(50);
    const reading = begin({ acceptable: none, takesFetchedMeanwhile, brings: 'second' });
    await pass(51);
    expect(reading.value).toBe(answer);
    expect(begunAt()).toEqual(begun);
  });
});

describe('The time of a fetch', () => {
  it('ends when its work has to, and not before', async () => {
    const { processWith, pass } = scene();
    const { begin, fetches } = processWith();
    begin({ takesMs: 2 * workMs });
    await pass(workMs);
    expect(fetches[0]?.signal.aborted).toBe(false);
    await pass(1);
    expect(fetches[0]?.signal.aborted).toBe(true);
  });

  it('does not end any more when it is done', async () => {
    const { processWith, pass } = scene();
    const { begin, fetches } = processWith();
    begin({ takesMs: 10 });
    begin({ id: 'y', takesMs: 10, brings: new Error('no answer') });
    await pass(2 * workMs);
    expect(fetches.map(({ signal }) => signal.aborted)).toEqual([false, false]);
  });
});

describe('What was fetched under a lease that was lost', () => {
  it('is written when the store has nothing', async () => {
    const { processWith, pass, endLease, stored, sealed, x } = scene();
    const { begin } = processWith();
    const reading = begin({ takesMs: 100 });
    await settled();
    await endLease();
    await pass(101);
    expect(reading.value).toBe('value');
    expect(await stored()).toBe('value');
    expect(await sealed.leaseOwner(x)).toBeUndefined();
  });

  it('is written over what would not do when the fetch began', async () => {
    const { processWith, pass, endLease, put, stored, now } = scene();
    const { begin, fetches } = processWith();
    await put('old', now());
    const reading = begin({ acceptable: only('new'), takesMs: 100, brings: 'new' });
    await settled();
    await endLease();
    await pass(101);
    expect(reading.value).toBe('new');
    expect(fetches[0]?.before).toBe('old');
    expect(await stored()).toBe('new');
  });

  it('gives way to what the next holder wrote', async () => {
    const { processWith, pass, endLease, stored } = scene();
    const [first, second] = [processWith(), processWith()];
    const late = first.begin({ takesMs: 100, brings: 'late' });
    await settled();
    await endLease();
    await second.read({ brings: 'next' });
    await pass(101);
    expect(late).toMatchObject({ value: 'next', endedAt: 100 });
    expect(first.cache.peek('x')?.value).toBe('next');
    expect(await stored()).toBe('next');
  });

  it('is answered, but not written, when what the next holder wrote will not do', async () => {
    const { processWith, pass, endLease, stored } = scene();
    const [first, second] = [processWith(), processWith()];
    const late = first.begin({ acceptable: only('late'), takesMs: 100, brings: 'late' });
    await settled();
    await endLease();
    await second.read({ brings: 'next' });
    await pass(101);
    expect(late.value).toBe('late');
    expect(first.cache.peek('x')?.value).toBe('late');
    expect(await stored()).toBe('next');
  });

  it('is answered, but not written, while the next holder is at work', async () => {
    const { processWith, pass, endLease, stored, sealed, x } = scene();
    const { begin, count } = processWith();
    const late = begin({ takesMs: 100, brings: 'late' });
    await settled();
    await endLease();
    await sealed.acquire(x, 'next', hour);
    await pass(101);
    expect(late).toMatchObject({ value: 'late', endedAt: 100 });
    expect(await stored()).toBeUndefined();
    expect(count('settle')).toBe(1);
    expect(await sealed.leaseOwner(x)).toEqual(Buffer.from('next'));
  });

  it('is answered, but not written, over something that is no entry', async () => {
    const { processWith, pass, endLease, sealed, x } = scene();
    const { begin } = processWith();
    const late = begin({ acceptable: only('late'), takesMs: 100, brings: 'late' });
    await settled();
    await endLease();
    await sealed.set(x, 'foreign', hour);
    await pass(101);
    expect(late.value).toBe('late');
    expect(await sealed.look(x)).toBe('foreign');
  });

  it.each([
    ['is written over what was there before it began, by any clock', skewMs + 1, 'late'],
    ['is not written over what may have been fetched after it began', skewMs, 'there'],
  ])('%s', async (_, beforeMs, answer) => {
    const { processWith, pass, endLease, put, stored, now } = scene();
    const { cache, begin } = processWith();
    await pass(10_000);
    const beganAt = now();
    const late = begin({ takesMs: 100, brings: 'late' });
    await settled();
    await endLease();
    await put('there', beganAt - beforeMs);
    await pass(101);
    expect(late.value).toBe(answer);
    expect(cache.peek('x')?.value).toBe(answer);
    expect(await stored()).toBe(answer);
  });

  it.each([
    [true, undefined],
    [false, 'value'],
  ])('is not written when its subject may have been forgotten since the reader asked: %s', async (may, left) => {
    const { processWith, pass, endLease, stored, sealed } = scene();
    const asked: unknown[][] = [];
    const { begin, read } = processWith({
      subjectOf: () => 'somebody',
      mayHaveForgotten: async (...args) => {
        asked.push(args);
        return may;
      },
    });
    const name = { subject: 'somebody', parts: ['text', 'x'] };
    await pass(70);
    const reading = begin({ takesMs: 150 });
    await pass(60);
    await endLease(name);
    await pass(91);
    expect(reading).toMatchObject({ value: 'value', endedAt: 220 });
    expect(asked).toEqual([['somebody', startsAt + 70]]);
    expect(await stored(name)).toBe(left);
    expect(await sealed.leaseOwner(name)).toBeUndefined();
    await read({ acceptable: none });
    expect(asked).toHaveLength(1); // a lease that was kept is enough
  });
});

describe('A lease', () => {
  /** Takes it and renews it, for so long at most; tells how long each renewal was to last. */
  async function renewed(longestMs: number, alter: Partial<Store> = {}) {
    const { shared, sealedOver, x, pass, now, sealed } = scene();
    const renewals: [at: number, ttlMs: number][] = [];
    const store = new Proxy<Store>(shared, {
      get: (target, method) => {
        const value = Reflect.get(target, method);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (method !== 'renew') return value.apply(target, args);
          renewals.push([now() - startsAt, args[2] as number]);
          return (alter.renew ?? value).apply(target, args as Parameters<Store['renew']>);
        };
      },
    });
    await sealed.acquire(x, 'me', leaseMs);
    const lease = keepLease({ store: sealedOver(store), name: x, owner: 'me', longestMs });
    const isHeld = async () => (await sealed.leaseOwner(x)) !== undefined;
    return { renewals, lease, pass, isHeld, release: () => sealed.release(x, 'me') };
  }

  it('lasts as long as its holder may need it, to the millisecond, and is not renewed beyond', async () => {
    const { renewals, pass, isHeld } = await renewed(6000);
    await pass(5999);
    expect(await isHeld()).toBe(true);
    await pass(1);
    expect(await isHeld()).toBe(false);
    await pass(10_000);
    expect(renewals).toEqual([
      [1000, leaseMs],
      [2000, leaseMs],
      [3000, leaseMs],
      [4000, 2000],
      [5000, 1000],
    ]);
  });

  it('is not renewed when its time is not over at a renewal, but before the next', async () => {
    const { renewals, pass } = await renewed(2500);
    await pass(10_000);
    expect(renewals).toEqual([
      [1000, 1500],
      [2000, 500],
    ]);
  });

  it('is not renewed after its holder is done', async () => {
    const { renewals, lease, pass } = await renewed(6000);
    await pass(1001);
    lease.letGo();
    await pass(10_000);
    expect(renewals).toHaveLength(1);
  });

  it('that was lost is not renewed again', async () => {
    const { renewals, pass, release, isHeld } = await renewed(6000);
    await pass(1500);
    await release();
    await pass(10_000);
    expect(renewals.map(([at]) => at)).toEqual([1000, 2000]);
    expect(await isHeld()).toBe(false);
  });

  it('is renewed again after the store did not answer', async () => {
    const renew = async () => {
      throw new Error('the store is away');
    };
    const { renewals, pass } = await renewed(3500, { renew });
    await pass(10_000);
    expect(renewals.map(([at]) => at)).toEqual([1000, 2000, 3000]);
  });

  it('of a long fetch is kept, so that others wait for it', async () => {
    const { processWith, pass } = scene();
    const [first, second] = [processWith({ workMs: 10_000 }), processWith({ workMs: 10_000 })];
    first.begin({ takesMs: 9000 });
    await pass(leaseMs + 500);
    const waiting = second.begin();
    await pass(10_000);
    expect(waiting).toMatchObject({ value: 'value', endedAt: 9000 });
    expect(second.fetches).toEqual([]);
  });

  it('of a fetch that never ends is left to others when no work lasts so long', async () => {
    const { processWith, pass, sealed, x } = scene();
    const { begin } = processWith();
    begin({ takesMs: hour });
    await pass(longestHoldMs - 1);
    expect(await sealed.leaseOwner(x)).toBeDefined();
    await pass(1);
    expect(await sealed.leaseOwner(x)).toBeUndefined();
  });

  it('of a fetch that is done is not renewed', async () => {
    const { processWith, pass } = scene();
    const { begin, count } = processWith();
    begin({ takesMs: 100 });
    begin({ id: 'y', takesMs: 100, brings: new Error('no answer') });
    await pass(10_000);
    expect(count('renew')).toBe(0);
  });
});
