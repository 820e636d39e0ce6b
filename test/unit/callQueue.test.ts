import { afterEach, expect, it, jest } from '@jest/globals';
import { CallQueue } from '../../src/admission/CallQueue.js';
import { boundsFor, Places } from '../../src/admission/Places.js';

afterEach(() => void jest.useRealTimers());

// Who gets the next place, and what becomes of calls that wait too long, is in gateway/isolation/callersApart.
it('The queue of calls refuses a holder with too much waiting, and nobody else', async () => {
  const bounds = boundsFor({ connections: 10, answerBytes: 1000 });
  const places = new Places({ ...bounds, calls: { perHolder: 1, perProcess: 4 } });
  const queue = new CallQueue({ places, maxWaiting: 1, maxWaitMs: 60_000 });
  const ask = (holder: string) =>
    queue.run(holder, () => 'answered').catch(({ code, httpStatus }) => [code, httpStatus]);
  let end = () => {};
  const first = queue.run('alice', () => new Promise<void>((resolve) => (end = resolve)));
  const [waiting, tooMany, other] = [ask('alice'), ask('alice'), ask('bob')];
  expect(await other).toBe('answered');
  end();
  expect(await Promise.all([waiting, tooMany])).toEqual(['answered', ['RATE_LIMITED', 429]]);
  await first;
});

it('A call that waited too long costs the next holder no turn', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  const bounds = boundsFor({ connections: 10, answerBytes: 1000 });
  const places = new Places({ ...bounds, calls: { perHolder: 1, perProcess: 1 } });
  const queue = new CallQueue({ places, maxWaiting: 1, maxWaitMs: 300 });
  let end = () => {};
  const first = queue.run('alice', () => new Promise<void>((resolve) => (end = resolve)));
  const late = queue.run('bob', () => 'answered').catch(({ code }) => code);
  await jest.advanceTimersByTimeAsync(200);
  const next = queue.run('carol', () => 'answered');
  await jest.advanceTimersByTimeAsync(150);
  expect(await late).toBe('RATE_LIMITED');
  end();
  expect(await next).toBe('answered');
  await first;
});

it('A call that has begun no longer counts how long it waited', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  const bounds = boundsFor({ connections: 10, answerBytes: 1000 });
  const places = new Places({ ...bounds, calls: { perHolder: 1, perProcess: 1 } });
  const queue = new CallQueue({ places, maxWaiting: 1, maxWaitMs: 300 });
  const ends: (() => void)[] = [];
  const ask = () => queue.run('alice', () => new Promise<void>((resolve) => ends.push(resolve)));
  const calls = [ask(), ask()];
  await jest.advanceTimersByTimeAsync(200);
  ends[0]?.();
  await jest.advanceTimersByTimeAsync(50);
  calls.push(ask());
  await jest.advanceTimersByTimeAsync(100);
  ends[1]?.();
  await jest.advanceTimersByTimeAsync(0);
  expect(ends).toHaveLength(3);
  ends[2]?.();
  await Promise.all(calls);
});
