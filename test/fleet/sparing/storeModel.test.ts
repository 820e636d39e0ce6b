import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { RedisStore } from '../../../src/stores/RedisStore.js';
import type { Store } from '../../../src/stores/Store.js';
import { atEnd } from '../../support/atEnd.js';
import { startRedis } from '../../support/redis.js';
import { SharedStore } from '../../support/stores/SharedStore.js';

const question = fc.record({
  what: fc.constantFrom('acquire', 'settle', 'fail', 'forget', 'fields', 'put', 'deleteIf', 'get', 'increment'),
  field: fc.constantFrom('token', 'job:1'),
  owner: fc.constantFrom('me', 'you'),
  awaited: fc.constantFrom(undefined, 'me', 'you'),
  coin: fc.boolean(), // chooses between the two forms of some questions
  when: fc.constantFrom('always', 'if-absent', 'if-longer'),
  ttlMs: fc.constantFrom(20_000, 40_000, 60_000),
});
type Question = typeof question extends fc.Arbitrary<infer One> ? One : never;

/** What a store answers to questions about `record`, one after the other, without times. */
async function answersOf(store: Store, record: string, questions: readonly Question[]): Promise<unknown[]> {
  let begunAt = 0;
  let version: string | undefined;
  const ask = async (one: Question, n: number): Promise<unknown> => {
    const { what, field, owner, awaited, coin, when } = one;
    const place = { record, field };
    const value = Buffer.from(`${n}`);
    const ttlMs = one.ttlMs + n; // an item that comes later lasts longer than an earlier one with the same time
    switch (what) {
      case 'acquire': {
        const refused = coin ? version : undefined;
        const turn = await store.acquire(place, { owner, leaseMs: 60_000, refused, awaited });
        if (turn.state === 'taken') {
          begunAt = turn.now;
          return turn.state;
        }
        if (turn.state !== 'found') return turn;
        version = turn.stored.version;
        return turn.stored.value;
      }
      case 'settle': {
        const outcome = { version: `v${n}`, value, ageMs: 0, ttlMs };
        return store.settle(place, owner, { ...outcome, begunAt: coin ? begunAt : 0 });
      }
      case 'fail':
        return store.settle(place, owner, { failure: coin ? undefined : value });
      case 'forget':
        await sleep(2); // for Redis, what happens in one millisecond happens at the same time
        await store.forget(record);
        await sleep(2);
        await store.note(`list-${record}`, value);
        return (await store.notesSince(`list-${record}`, 0)).notes.at(-1);
      case 'fields':
        return (await store.fields(record)).map(({ name }) => name).sort();
      case 'put':
        return store.put(`item-${record}`, value, ttlMs, when);
      case 'deleteIf':
        return store.deleteIf(`item-${record}`, Buffer.from(`${n - 1}`));
      case 'get':
        return (await store.get(`item-${record}`))?.value;
      case 'increment':
        return (await store.increment(`count-${record}`, 60_000)).count;
    }
  };
  const answers: unknown[] = [];
  for (const [n, one] of questions.entries()) answers.push(await ask(one, n));
  return answers;
}

it('The store of simulated fleets answers as the one in Redis does, whatever they are asked', async () => {
  const { url } = await startRedis();
  const redis = await RedisStore.open(url);
  atEnd(() => redis.close());
  let records = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(question, { minLength: 20, maxLength: 40 }), async (questions) => {
      const record = `r${records++}`;
      expect(await answersOf(new SharedStore(), record, questions)).toEqual(await answersOf(redis, record, questions));
    }),
    { numRuns: 300 },
  );
});
