import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Store } from '../../../src/stores/Store.js';
import { type StoreProcess, startStoreProcess } from '../storeProcess.js';
import { isLinearizable, type Observation, type Operation, perform } from './storeModel.js';

/** Whatever does operations on one store, from here or from another process. */
type Client = (base: string, operation: Operation) => Promise<unknown>;

const owners = fc.constantFrom('me', 'you', '');
const values = fc.constantFrom('one', 'two', '\0\r\n\xff', '');
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('acquire' as const),
      owner: owners,
      refused: fc.option(values, { nil: undefined }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      owner: owners,
      value: values,
      to: fc.constantFrom('entry' as const, 'note' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('get' as const),
      of: fc.constantFrom('entry' as const, 'lease' as const, 'note' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('delete' as const),
      of: fc.constantFrom('entry' as const, 'lease' as const),
      expected: fc.oneof(owners, values),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('renew' as const), owner: owners }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('set' as const, 'claim' as const), value: values }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('increment' as const), by: fc.integer({ min: 1, max: 3 }) }) },
);

const bytes = (text: string) => Buffer.from(text, 'latin1');
const newKey = () => randomBytes(16).toString('base64url');

/** The part of the contract that is about many at once; `open` opens an instance of the store, `url` one in a process. */
export function storeRaces(stores: () => { open(): Promise<Store>; readonly url: string | undefined }): void {
  describe('with many at once', () => {
    const instances: Store[] = [];
    const processes: StoreProcess[] = [];
    const clients: Client[] = [];
    beforeAll(async () => {
      const { open, url } = stores();
      instances.push(await open(), await open());
      if (url) processes.push(...(await Promise.all([startStoreProcess(url), startStoreProcess(url)])));
      clients.push(
        ...instances.map(
          (store): Client =>
            (base, each) =>
              perform(store, base, each),
        ),
        ...processes.map(
          (each): Client =>
            (base, what) =>
              each.order({ do: 'perform', base, what }),
        ),
      );
    }, 60_000);
    afterAll(async () => {
      // One without an address is the one that the other tests have.
      const opened = stores().url === undefined ? [] : instances;
      await Promise.all([...opened, ...processes].map((each) => each.close()));
    });

    /** Each client does its operations one after the other, all clients at the same time. */
    async function observe(plan: readonly (readonly Operation[])[]): Promise<readonly Observation[]> {
      const base = newKey();
      const seen: Observation[] = [];
      let clock = 0;
      const ofClient = async (client: Client, operations: readonly Operation[]) => {
        for (const each of operations) {
          const askedAt = clock++;
          const result = await client(base, each);
          seen.push({ operation: each, askedAt, answeredAt: clock++, result });
        }
      };
      await Promise.all(clients.map((client, n) => ofClient(client, plan[n] ?? [])));
      return seen;
    }

    it('does one thing after another: every answer fits one order of all that was asked, own writes first', async () => {
      const plan = fc.array(fc.array(operation, { minLength: 2, maxLength: 5 }), { minLength: 4, maxLength: 4 });
      await fc.assert(
        fc.asyncProperty(plan, async (operations) => {
          const seen = await observe(operations);
          if (!isLinearizable(seen)) throw new Error(`No order explains ${JSON.stringify(seen)}`);
        }),
        { numRuns: 150, endOnFailure: true },
      );
    }, 120_000);

    it('compares owners, refused entries and what is to be deleted byte by byte, whatever the bytes', async () => {
      const [store, peer] = instances as [Store, Store];
      const odd = [
        Buffer.alloc(0),
        bytes('\0'),
        bytes('\0\0'),
        bytes('\r\n$-1\r\n'),
        bytes('\xff\xfe'),
        randomBytes(70_000),
      ];
      for (const [n, value] of odd.entries()) {
        const key = newKey();
        const other = odd[(n + 1) % odd.length] as Buffer;
        expect(await store.acquire(key, value, 60_000)).toEqual({ state: 'taken' });
        expect(await peer.acquire(key, other, 60_000)).toEqual({ state: 'held', owner: value });
        expect(await peer.renew(key, other, 60_000)).toBe(false);
        expect(await peer.renew(key, value, 60_000)).toBe(true);
        expect(await peer.settle(key, other, { key, value: other, ttlMs: 60_000 })).toBe(false);
        expect(await peer.settle(key, value, { key, value, ttlMs: 60_000 })).toBe(true);
        expect(await store.acquire(key, value, 60_000)).toEqual({ state: 'found', entry: value });
        expect(await store.acquire(key, value, 60_000, other)).toEqual({ state: 'found', entry: value });
        expect(await store.claim(key, other, 60_000)).toBe(false);
        expect(await store.acquire(key, other, 60_000, value)).toEqual({ state: 'taken' });
        expect(await peer.compareAndDelete(key, other)).toBe(false);
        expect(await peer.compareAndDelete(key, value)).toBe(true);
      }
    });

    it('gives the lease that runs out to exactly one of all who want it', async () => {
      const key = newKey();
      await instances[0]?.acquire(key, bytes('dead'), 400);
      const asking = Array.from({ length: 20 }, async (_, n) => {
        const store = instances[n % 2] as Store;
        for (;;) {
          const turn = await store.acquire(key, bytes(`${n}`), 60_000);
          if (turn.state === 'taken' || String(turn.state === 'held' && turn.owner) !== 'dead') return turn.state;
          await sleep(5);
        }
      });
      const states = await Promise.all(asking);
      expect(states.filter((state) => state === 'taken')).toHaveLength(1);
    }, 20_000);

    it('lists everything that is there all the time, while other entries come and go', async () => {
      const [store, peer] = instances as [Store, Store];
      const prefix = `${newKey()}.`;
      const kept = Array.from({ length: 300 }, (_, n) => `${prefix}kept-${n}`);
      await Promise.all(kept.map((key) => store.set(key, bytes('x'), 60_000)));
      let ends = false;
      const comeAndGo = async (n: number) => {
        for (let round = 0; !ends; round++) {
          const key = `${prefix}${n}-${round}`;
          await store.set(key, bytes('x'), 60_000);
          await store.compareAndDelete(key, bytes('x'));
          await nextTurn(); // a store in memory would let nobody else have one
        }
      };
      const traffic = Promise.all(Array.from({ length: 8 }, (_, n) => comeAndGo(n)));
      for (let look = 0; look < 5; look++) {
        const listed = new Set(await peer.list(prefix));
        expect(kept.filter((key) => !listed.has(key))).toEqual([]);
        await sleep(5);
      }
      ends = true;
      await traffic;
      expect([...(await peer.list(prefix))].sort()).toEqual(kept.sort());
    }, 60_000);
  });
}
