import { jest } from '@jest/globals';
import { CallQueue } from '../../src/admission/CallQueue.js';
import { boundsFor, Places } from '../../src/admission/Places.js';

afterEach(() => void jest.useRealTimers());

/** A queue with places for so many calls, one of each holder, where one more of each may wait. */
function queueOf(perProcess: number, maxWaitMs: number) {
  const bounds = boundsFor({ MAX_CONNECTIONS: 10, answerBytes: 1000 });
  const places = new Places({ ...bounds, calls: { ...bounds.calls, perHolder: 1, perProcess } });
  const queue = new CallQueue({ places, resource: 'calls', maxWaiting: 1, maxWaitMs });
  return {
    ask: (holder: string) => queue.run(holder, () => 'answered').catch(({ code, httpStatus }) => [code, httpStatus]),
    /** A call that ends when `end` is called. */
    hold(holder: string) {
      let end = () => {};
      const ended = queue.run(holder, () => new Promise<void>((resolve) => (end = resolve)));
      return { ended, end: () => end() };
    },
  };
}

// Who gets the next place is in gateway/isolation/callersApart.
it('The queue of calls refuses a holder with too much waiting, and nobody else', async () => {
  const { ask, hold } = queueOf(4, 60_000);
  const first = hold('alice');
  const [waiting, tooMany, other] = [ask('alice'), ask('alice'), ask('bob')];
  expect(await other).toBe('answered');
  first.end();
  expect(await Promise.all([waiting, tooMany])).toEqual(['answered', ['RATE_LIMITED', 429]]);
});

it('A call that waited too long costs the next holder no turn, and one that has begun costs no other its place in the line', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  const { ask, hold } = queueOf(1, 300);
  const [first, second] = [hold('alice'), hold('alice')];
  const late = ask('bob');
  await jest.advanceTimersByTimeAsync(200);
  first.end();
  await first.ended;
  const next = [ask('alice'), ask('carol')];
  await jest.advanceTimersByTimeAsync(150);
  expect(await late).toEqual(['RATE_LIMITED', 429]);
  second.end();
  await jest.advanceTimersByTimeAsync(300); // one that lost its turn would be refused
  expect(await Promise.all(next)).toEqual(['answered', 'answered']);
});

it('A place that is given back twice counts once', () => {
  const places = new Places(boundsFor({ MAX_CONNECTIONS: 10, answerBytes: 1000 }));
  const [release] = ['one', 'another'].map(() => places.take('calls', 'alice'));
  release?.();
  release?.();
  expect(places.heldByAll('calls')).toBe(1);
});
