import { jest } from '@jest/globals';
import { EndpointBreaker } from '../../src/upstream/EndpointBreaker.js';
import { atEnd } from '../support/atEnd.js';

it('after a failed trial for all, its holder alone is refused once the next trial is due', async () => {
  jest.useFakeTimers();
  atEnd(() => void jest.useRealTimers());
  const breaker = new EndpointBreaker(1000);
  const fail = (holder: string) =>
    breaker
      .run({ holder, subject: `of ${holder}` }, async (record) => {
        record.outcome = 'failed';
        throw new Error('failed');
      })
      .catch(() => {});
  for (const holder of ['a', 'b', 'c']) await fail(holder);
  jest.advanceTimersByTime(1000);
  await fail('a');
  expect(breaker.refusalOf('a')).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', onlyFor: undefined });
  jest.advanceTimersByTime(1000);
  expect(breaker.refusalOf('a')).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', onlyFor: { holder: 'a' } });
  expect(breaker.refusalOf('b')).toBeUndefined();
});
