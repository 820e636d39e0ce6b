import { jest } from '@jest/globals';
import { EndpointBreaker } from '../../src/upstream/EndpointBreaker.js';

it('opens for all when three holders fail, but not about one taxpayer; after a failed trial its holder alone waits on', async () => {
  jest.useFakeTimers();
  const breaker = new EndpointBreaker(1000);
  const about = { holder: 'd', subject: 'of d' };
  let answer = () => {};
  const earlier = breaker.run(about, (record) => {
    record.outcome = 'answered';
    return new Promise<void>((resolve) => (answer = resolve));
  });
  const fail = (holder: string, subject = `of ${holder}`) =>
    breaker.run({ holder, subject }, async (record) => {
      record.outcome = 'failed';
    });
  for (const holder of ['a', 'b', 'c']) await fail(holder, 'one');
  expect(breaker.refusalOf('d')).toBeUndefined();
  for (const holder of ['a', 'b', 'c']) await fail(holder);
  jest.advanceTimersByTime(1000);
  await fail('c');
  expect(breaker.refusalOf('c')).toMatchObject({ onlyFor: undefined, retryAfterSeconds: 11 });
  jest.advanceTimersByTime(1000);
  expect(breaker.refusalOf('c')).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', onlyFor: { holder: 'c' } });
  expect(breaker.refusalOf('b')).toBeUndefined();

  // The answer to an earlier call closes it, also during a trial that is then not made.
  await breaker.run(about, () => {
    answer();
    return earlier;
  });
  await breaker.run(about, async () => expect(breaker.refusalOf('c')).toBeUndefined());
});
