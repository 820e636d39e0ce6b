import { jest } from '@jest/globals';
import { EndpointBreaker } from '../../src/upstream/EndpointBreaker.js';
import { atEnd } from '../support/atEnd.js';

it('opens for all when three holders fail, but not about one taxpayer; after a failed trial its holder alone waits on', async () => {
  jest.useFakeTimers();
  atEnd(() => void jest.useRealTimers());
  const breaker = new EndpointBreaker(1000);
  const fail = (holder: string, subject = `of ${holder}`) =>
    breaker
      .run({ holder, subject }, async (record) => {
        record.outcome = 'failed';
        throw new Error('failed');
      })
      .catch(() => {});
  for (const holder of ['a', 'b', 'c']) await fail(holder, 'one');
  expect(breaker.refusalOf('d')).toBeUndefined();
  for (const holder of ['a', 'b', 'c']) await fail(holder);
  jest.advanceTimersByTime(1000);
  await fail('a');
  expect(breaker.refusalOf('a')).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', onlyFor: undefined });
  jest.advanceTimersByTime(1000);
  expect(breaker.refusalOf('a')).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', onlyFor: { holder: 'a' } });
  expect(breaker.refusalOf('b')).toBeUndefined();
});
