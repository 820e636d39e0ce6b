import { randomBytes } from 'node:crypto';
import type { Place, Store } from '../../../src/stores/Store.js';
import { times } from '../times.js';

interface StoreUnderTest {
  /** Opens one more instance on the same data; where nothing is shared, gives the same again. */
  open(): Promise<Store>;
  /** Lets so much time pass for the store; a real wait where the clock is not ours. */
  pass(ms: number): Promise<void>;
}

const bytes = (text: string) => Buffer.from(text, 'latin1');
const newKey = () => randomBytes(16).toString('base64url');
const newPlace = (field = 'token'): Place => ({ record: newKey(), field });
const value = (text: string, more?: { version?: string; ageMs?: number; begunAt?: number; ttlMs?: number }) => ({
  version: text,
  value: bytes(text),
  ageMs: 0,
  begunAt: 0,
  ttlMs: 60_000,
  ...more,
});
const wish = (owner: string, refused?: string, awaited?: string) => ({ owner, leaseMs: 3000, refused, awaited });
const taken = { state: 'taken', now: expect.any(Number) };
const held = (owner: string) => ({ state: 'held', owner });
const found = (text: string) => ({
  state: 'found',
  stored: { version: text, value: bytes(text), ageMs: expect.any(Number) },
});

/** The contract of a {@link Store}. `start` is called for each instance that a test needs of its own, too. */
export function storeContract(name: string, start: () => Promise<StoreUnderTest>): void {
  describe(name, () => {
    let under: StoreUnderTest;
    let store: Store;
    let peer: Store;
    beforeAll(async () => {
      under = await start();
      [store, peer] = [await under.open(), await under.open()];
    });
    afterAll(async () => {
      await Promise.all([store.close(), peer.close()]);
    });

    /** What each of many gets who ask at once, by either instance. */
    const atOnce = <T>(count: number, ask: (each: Store, n: number) => Promise<T>) =>
      Promise.all(times(count, (n) => ask(n % 2 ? store : peer, n)));
    /** Writes a value as the holder of a lease does. */
    const write = async (place: Place, text: string, more?: Parameters<typeof value>[1]) => {
      const acquired = await store.acquire(place, wish('writer'));
      if (acquired.state === 'found') await store.acquire(place, wish('writer', acquired.stored.version));
      expect(await store.settle(place, 'writer', value(text, more))).toBe(true);
    };

    it('gives back what was put, to every instance, and nothing for what was not', async () => {
      const key = newKey();
      expect(await store.get(key)).toBeUndefined();
      const all = Buffer.from(times(256, (n) => n));
      for (const content of [bytes('one'), Buffer.alloc(0), all, randomBytes(1 << 20)]) {
        await store.put(key, content, 60_000, 'always');
        expect((await peer.get(key))?.value.equals(content)).toBe(true);
        content.fill('x'); // the store has a copy of its own
        if (content.length > 0) expect((await store.get(key))?.value.equals(content)).toBe(false);
      }
      expect((await peer.get(key))?.leftMs).toBeGreaterThan(50_000);
    });

    it('puts an item if it is absent, or if it lasts longer than what is there', async () => {
      const [claim, mark] = [newKey(), newKey()];
      const won = await atOnce(40, (each, n) => each.put(claim, bytes(`claim-${n}`), 60_000, 'if-absent'));
      expect(won.filter(Boolean)).toHaveLength(1);
      const winner = bytes(`claim-${won.indexOf(true)}`);
      expect((await peer.get(claim))?.value).toEqual(winner);
      for (const other of ['other', `${winner} `]) expect(await peer.deleteIf(claim, bytes(other))).toBe(false);
      const deleted = await atOnce(4, (each) => each.deleteIf(claim, winner));
      expect(deleted.filter(Boolean)).toHaveLength(1);
      expect(await store.put(claim, bytes('next'), 60_000, 'if-absent')).toBe(true);

      for (const [ttlMs, isPut] of [
        [20_000, true],
        [10_000, false],
        [30_000, true],
      ] as const) {
        expect(await store.put(mark, bytes(`${ttlMs}`), ttlMs, 'if-longer')).toBe(isPut);
      }
      expect(await peer.get(mark)).toEqual({ value: bytes('30000'), leftMs: expect.any(Number) });
    });

    it('counts for everybody, from the first count until its time is over', async () => {
      const count = newKey();
      expect(await store.increment(count, 20_000)).toEqual({ count: 1, leftMs: expect.any(Number) });
      const counts = await atOnce(20, (each) => each.increment(count, 9e6));
      expect(counts.map((each) => each.count).sort((a, b) => a - b)).toEqual(times(20, (n) => n + 2));
      for (const { leftMs } of counts) expect(leftMs).toBeLessThanOrEqual(20_000);
    });

    it('ends items, values, leases and counts when their time is over, not before', async () => {
      const [item, count] = [newKey(), newKey()];
      const [entry, late, renewed] = [newPlace(), newPlace(), newPlace()];
      await store.put(item, bytes('x'), 1500, 'always');
      await write(entry, 'short', { ttlMs: 1500 });
      await store.acquire(late, { owner: 'late', leaseMs: 1500 });
      await store.acquire(renewed, { owner: 'me', leaseMs: 1500 });
      await store.increment(count, 1500);
      expect((await peer.get(item))?.value).toEqual(bytes('x'));
      expect(await peer.acquire(entry, wish('you'))).toEqual(found('short'));
      expect(await store.acquire(renewed, { owner: 'me', leaseMs: 60_000 })).toEqual(taken);
      expect(await peer.acquire(late, { owner: 'next', leaseMs: 3000 })).toEqual(held('late'));

      await under.pass(1510);
      expect(await peer.get(item)).toBeUndefined();
      expect(await peer.acquire(entry, wish('you'))).toEqual(taken);
      expect((await store.increment(count, 1000)).count).toBe(1);
      expect(await peer.acquire(renewed, { owner: 'you', leaseMs: 60_000 })).toEqual(held('me'));
      expect(await peer.acquire(late, wish('next'))).toEqual(taken);
      expect(await store.acquire(late, wish('late'))).toEqual(held('next'));
      expect(await store.settle(late, 'late', value('late'))).toBe(false);
    });

    it('lets a holder whose lease is over write, as long as nobody took it since', async () => {
      const place = newPlace();
      await store.acquire(place, { owner: 'slow', leaseMs: 20 });
      await under.pass(50);
      expect(await store.settle(place, 'slow', value('slow'))).toBe(true);
      expect(await peer.acquire(place, wish('you'))).toEqual(found('slow'));
    });

    it('renews and writes for the holder of the lease and for nobody else, and ends the lease', async () => {
      const place = newPlace();
      expect(await store.settle(place, 'me', value('without a lease'))).toBe(false);
      for (const [text, refused] of [
        ['first', undefined],
        ['second', 'first'],
      ] as const) {
        expect(await store.acquire(place, wish('me', refused))).toEqual(taken);
        for (const owner of ['you', 'm', 'me.']) {
          expect(await peer.acquire(place, wish(owner, refused))).toEqual(held('me'));
          expect(await peer.settle(place, owner, value('of another'))).toBe(false);
        }
        expect(await store.settle(place, 'me', value(text))).toBe(true);
        for (const other of [undefined, '', `${text}.`])
          expect(await peer.acquire(place, wish('you', other))).toEqual(found(text));
      }
      expect(await store.settle(place, 'me', value('late'))).toBe(false);
    });

    it('gives the value, or the lease to exactly one of many who ask at once, and its owner to the others', async () => {
      const place = newPlace();
      const acquire = (who: string) => atOnce(40, (each, n) => each.acquire(place, wish(`${who}-${n}`)));
      const turns = await acquire('owner');
      const winner = `owner-${turns.findIndex(({ state }) => state === 'taken')}`;
      expect(turns.filter(({ state }) => state !== 'taken')).toEqual(Array(39).fill(held(winner)));
      const settled = peer.settle(place, winner, value('value'));
      // Asked before it is written, answered perhaps after. By others: the owner itself would renew its lease.
      const later = await acquire('other');
      expect(await settled).toBe(true);
      expect(later.map(({ state }) => state)).not.toContain('taken');
      expect(await acquire('owner')).toEqual(Array(40).fill(found('value')));
    });

    it('tells the failure of a holder to those who waited for it, and to nobody else', async () => {
      const place = newPlace();
      await store.acquire(place, wish('me'));
      expect(await store.settle(place, 'me', { failure: bytes('why') })).toBe(true);
      for (let each = 0; each < 2; each += 1) {
        expect(await peer.acquire(place, wish('you', undefined, 'me'))).toEqual({
          state: 'failed',
          failure: bytes('why'),
        });
      }
      expect(await peer.acquire(place, wish('other', undefined, 'somebody'))).toEqual(taken);
      expect(await peer.settle(place, 'other', { failure: undefined })).toBe(true); // nothing that others may know
      expect(await peer.acquire(place, wish('third'))).toEqual(taken);
    });

    it('tells how old a value is, by its own clock', async () => {
      const place = newPlace();
      await write(place, 'value', { ageMs: 5000 });
      await under.pass(300);
      const acquired = await peer.acquire(place, wish('you'));
      const ageMs = acquired.state === 'found' ? acquired.stored.ageMs : Number.NaN;
      expect(ageMs).toBeGreaterThanOrEqual(5290);
      expect(ageMs).toBeLessThan(20_000);
    });

    it('forgets a record with its leases, and tells everybody who asks', async () => {
      const list = newKey();
      const places = ['token', 'job:a', 'job:b'].map((field) => ({ record: 'r'.repeat(43), field }));
      const [token, job, other] = places as [Place, Place, Place];
      const elsewhere = newPlace();
      for (const place of [token, job, elsewhere]) await write(place, 'value');
      const { now: before } = (await store.acquire(other, wish('me'))) as { readonly now: number };
      const { mark } = await peer.notesSince(list, 0);
      expect(await store.forget(token.record)).toBeGreaterThanOrEqual(2);
      await store.note(list, bytes('note'));
      const { notes, mark: next } = await peer.notesSince(list, mark);
      expect(notes).toEqual([bytes('note')]);
      expect(next).toBeGreaterThanOrEqual(mark);
      expect((await peer.notesSince(newKey(), 0)).notes).toEqual([]);
      expect(await store.settle(other, 'me', value('late'))).toBe(false);
      expect(await peer.fields(token.record)).toEqual([]);
      expect(await peer.acquire(elsewhere, wish('you'))).toEqual(found('value'));

      await under.pass(300);
      for (const place of places) {
        const { now } = (await peer.acquire(place, wish('you'))) as { readonly now: number };
        expect(now).toBeGreaterThan(before);
        expect(await peer.settle(place, 'you', value('from before', { begunAt: before }))).toBe(true);
        expect(await peer.acquire(place, wish('you'))).toEqual(taken);
        expect(await peer.settle(place, 'you', value('new', { begunAt: now }))).toBe(true);
        expect(await peer.acquire(place, wish('you'))).toEqual(found('new'));
        await peer.acquire(place, wish('me', 'new'));
        expect(await peer.settle(place, 'me', { failure: bytes('why') })).toBe(true);
      }
    });

    it('shows the fields of a record', async () => {
      const token = newPlace();
      await write(token, 'token', { ttlMs: 120_000 });
      await write({ ...token, field: 'job:a' }, 'job-a');
      const values = await peer.fields(token.record);
      expect(values.map(({ name }) => name).sort()).toEqual(['job:a', 'token']);
      for (const { leftMs } of values) expect(leftMs).toBeGreaterThan(1000);
    });

    it('closes twice, and refuses to work from then on, before it is closed', async () => {
      const closing = await (await start()).open();
      const closed = [closing.close(), closing.close()];
      await expect(closing.get(newKey())).rejects.toThrow('closed');
      await Promise.all(closed);
    });
  });
}
