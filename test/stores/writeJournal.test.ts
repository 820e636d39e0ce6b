import { expect, it } from '@jest/globals';
import { WriteJournal } from '../../src/stores/WriteJournal.js';

it('what waits for the primary store is bounded in bytes: the oldest writes go first', () => {
  const journal = new WriteJournal(10_000);
  const write = { kind: 'set', value: Buffer.alloc(4000), expiresAt: Number.POSITIVE_INFINITY } as const;
  for (const key of ['first', 'second', 'third']) journal.add(key, write);
  expect(journal.keys('').toSorted()).toEqual(['second', 'third']);
});
