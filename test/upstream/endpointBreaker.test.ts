import { beforeEach, describe, expect, it } from '@jest/globals';
import type { GatewayError } from '../../src/errors/errors.js';
import { realRuntime } from '../../src/process/Runtime.js';
import { type CallRecord, EndpointBreaker } from '../../src/upstream/EndpointBreaker.js';

const resetMs = 5000;
const windowMs = 10_000;
const forOne = "the breaker is open for this caller's calls";
const forAll = 'the breaker is open for all calls';

describe('EndpointBreaker', () => {
  let now: number;
  let breaker: EndpointBreaker;
  beforeEach(() => {
    now = 1_000_000;
    breaker = new EndpointBreaker(resetMs, { ...realRuntime, monotonicNow: () => now });
  });

  /** How a call ended: its outcome, or why it was not made. */
  async function call(outcome: CallRecord['outcome'], holder?: string, subject?: string): Promise<unknown> {
    try {
      return await breaker.run({ holder, subject }, async (record) => {
        record.outcome = outcome;
        if (outcome !== 'answered') throw new Error(outcome);
        return outcome;
      });
    } catch (error) {
      return (error as GatewayError).reason ?? (error as Error).message;
    }
  }
  const fail = async (holder: string | undefined, subjects: number, from = 0) => {
    for (let n = from; n < from + subjects; n += 1) await call('failed', holder, `subject-${n}`);
  };
  /** A call that ends when it is told to. */
  function slowCall(holder: string) {
    let end = (_: CallRecord['outcome']) => {};
    const ended = breaker.run({ holder }, async (record) => {
      const outcome = await new Promise<CallRecord['outcome']>((resolve) => {
        end = resolve;
      });
      record.outcome = outcome;
      if (outcome === 'failed') throw new Error(outcome);
      return outcome;
    });
    ended.catch(() => {});
    return { end: (outcome: CallRecord['outcome']) => end(outcome), ended };
  }
  /** Somebody whose calls go well, so that the failures of one holder are no outage. */
  const others = async () => {
    for (const holder of ['other-1', 'other-2', 'other-3']) await call('answered', holder, 'subject');
  };

  it('is closed at first, and passes on what calls bring and throw', async () => {
    expect(breaker.state).toBe('closed');
    expect(await call('answered')).toBe('answered');
    expect(await call('failed')).toBe('failed');
  });

  it('opens for a holder when five subjects have failed, and says for how long', async () => {
    await others();
    await fail('one', 4);
    expect(breaker.state).toBe('closed');
    expect(await call('failed', 'one', 'subject-4')).toBe('failed');
    expect(breaker.state).toBe('open');
    now += 1001;
    const error = await breaker.run({ holder: 'one' }, async () => 'made').catch((refusal) => refusal);
    expect(error).toMatchObject({
      ...{ code: 'UPSTREAM_UNAVAILABLE', reason: forOne, onlyFor: { holder: 'one' }, retryAfterSeconds: 4 },
      message: 'The service kept failing: the gateway pauses its calls for a moment',
    });
    expect(await call('answered', 'other-1')).toBe('answered');
  });

  it('counts each subject once, and calls without a subject each by itself', async () => {
    await others();
    for (let n = 0; n < 20; n += 1) await call('failed', 'one', 'the same');
    expect(breaker.state).toBe('closed');
    for (let n = 0; n < 4; n += 1) await call('failed', 'one');
    expect(breaker.state).toBe('open');
  });

  it('counts callers without an identity as one', async () => {
    await others();
    await fail(undefined, 5);
    expect(await call('answered')).toBe(forOne);
  });

  it('stays closed while less than half of the subjects fail', async () => {
    await others();
    for (let n = 0; n < 6; n += 1) await call('answered', 'one', `well-${n}`);
    await fail('one', 5);
    expect(breaker.state).toBe('closed');
    await fail('one', 1, 5); // six of twelve
    expect(breaker.state).toBe('open');
  });

  it('does not count calls that were not made, nor a failure that was followed by an answer', async () => {
    await others();
    for (let n = 0; n < 10; n += 1) await call('not-made', 'one', `subject-${n}`);
    await fail('one', 4);
    await call('answered', 'one', 'subject-0');
    await fail('one', 1, 4);
    expect(breaker.state).toBe('closed');
  });

  it('forgets failures after ten seconds', async () => {
    await others();
    await fail('one', 4);
    now += windowMs + 1;
    await others();
    await fail('one', 1, 4);
    expect(breaker.state).toBe('closed');
  });

  it('makes one trial after the reset time, which the others wait for, and closes when it is answered', async () => {
    await others();
    await fail('one', 5);
    now += resetMs - 1;
    expect(await call('answered', 'one')).toBe(forOne);
    now += 1;
    expect(breaker.state).toBe('half-open');
    const trial = slowCall('one');
    let isMade = false;
    const second = breaker.run({ holder: 'one' }, async (record) => {
      isMade = true;
      record.outcome = 'answered';
      return 'second';
    });
    await new Promise(setImmediate);
    expect(isMade).toBe(false);
    trial.end('answered');
    expect(await trial.ended).toBe('answered');
    expect(await second).toBe('second');
    expect(breaker.state).toBe('closed');
    await fail('one', 4);
    expect(breaker.state).toBe('closed'); // the failures from before do not count any more
  });

  it('opens again when the trial fails, and makes another when it was not made', async () => {
    await others();
    await fail('one', 5);
    now += resetMs;
    expect(await call('failed', 'one')).toBe('failed');
    expect(breaker.state).toBe('open');
    expect(await call('answered', 'one')).toBe(forOne);
    now += resetMs;
    expect(await call('not-made', 'one')).toBe('not-made');
    expect(breaker.state).toBe('half-open');
    const trial = slowCall('one');
    const waiting = call('answered', 'one');
    trial.end('failed');
    expect(await waiting).toBe(forOne);
  });

  it('forgets a holder that does not come back for its trial', async () => {
    await others();
    await fail('one', 5);
    now += resetMs + windowMs - 1;
    expect(breaker.state).toBe('half-open');
    now += 1;
    expect(breaker.state).toBe('closed');
    await others();
    await fail('one', 4);
    expect(breaker.state).toBe('closed');
  });

  it('opens for all when it is open for two holders and half of those that were seen', async () => {
    for (const holder of ['well-1', 'well-2']) await call('answered', holder);
    await fail('one', 5);
    expect(await call('answered', 'new-1')).toBe('answered');
    expect(await call('answered', 'new-2')).toBe('answered');
    await fail('two', 5); // two of six
    expect(await call('answered', 'well-1')).toBe('answered');
    await fail('three', 5); // three of seven
    expect(await call('answered', 'well-2')).toBe('answered');
    await fail('four', 5); // four of eight
    const error = await breaker.run({ holder: 'well-1' }, async () => 'made').catch((refusal) => refusal);
    expect(error).toMatchObject({ reason: forAll, retryAfterSeconds: 5 });
    expect(error.onlyFor).toBeUndefined();
    expect(breaker.state).toBe('open');
    now += resetMs;
    expect(await call('answered', 'well-1')).toBe('answered');
  });

  it('stays closed for the others when it is open for the only holder', async () => {
    await fail('one', 5);
    expect(await call('answered', 'two')).toBe('answered');
  });

  it('opens for all when five holders fail, and half of those that were seen', async () => {
    for (let n = 0; n < 6; n += 1) await call('answered', `well-${n}`);
    for (let n = 0; n < 5; n += 1) await call('failed', `ill-${n}`);
    expect(await call('answered', 'well-0')).toBe('answered');
    await call('failed', 'ill-5');
    expect(await call('answered', 'well-0')).toBe(forAll);
  });

  it('asks nobody who was not seen for ten seconds', async () => {
    for (let n = 0; n < 6; n += 1) await call('answered', `well-${n}`);
    now += windowMs;
    for (let n = 0; n < 5; n += 1) await call('failed', `ill-${n}`);
    expect(await call('answered', 'well-0')).toBe('answered');
    now += 1;
    for (let n = 5; n < 10; n += 1) await call('failed', `ill-${n}`);
    expect(await call('answered', 'well-1')).toBe(forAll);
  });
});
