import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { GatewayError } from '../../src/errors/errors.js';
import { type CallRecord, EndpointBreaker } from '../../src/upstream/EndpointBreaker.js';
import { replacePlatform, restorePlatform } from '../support/platform.js';

const resetMs = 5000;
const windowMs = 10_000;
const forOne = "the breaker is open for this caller's calls";
const forAll = 'the breaker is open for all calls';

describe('EndpointBreaker', () => {
  let now: number;
  let breaker: EndpointBreaker;
  beforeEach(() => {
    now = 1_000_000;
    replacePlatform(() => ({ monotonicNow: () => now }));
    breaker = new EndpointBreaker(resetMs);
  });

  afterEach(restorePlatform);

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

  it('opens for a holder when five subjects fail in a row, and says for how long', async () => {
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

  it('counts no calls that were not made, and no failures before an answer', async () => {
    for (let n = 0; n < 10; n += 1) await call('not-made', 'one', `subject-${n}`);
    await fail('one', 4);
    await call('answered', 'one', 'another');
    await fail('one', 4, 4);
    expect(breaker.state).toBe('closed');
    await fail('one', 1, 8);
    expect(breaker.state).toBe('open');
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

  it('opens for all when three holders fail in a row about three taxpayers', async () => {
    await others();
    for (const holder of ['one', 'two']) await call('failed', holder, `taxpayer of ${holder}`);
    expect(await call('failed', 'two', 'another taxpayer')).toBe('failed');
    expect(await call('failed', 'three', 'taxpayer of one')).toBe('failed');
    expect(breaker.state).toBe('closed');
    expect(await call('failed', 'three', 'taxpayer of three')).toBe('failed');
    expect(breaker.state).toBe('open');
    const error = await breaker.run({ holder: 'other-1' }, async () => 'made').catch((refusal) => refusal);
    expect(error).toMatchObject({ reason: forAll, retryAfterSeconds: 5 });
    expect(error.onlyFor).toBeUndefined();
  });

  it('counts the jobs of one taxpayer as one taxpayer for the outage, and each by itself for their holder', async () => {
    const failJob = (holder: string, subject: string) =>
      breaker
        .run({ holder, subject, taxpayer: 'the same' }, async (record) => {
          record.outcome = 'failed';
          throw new Error('failed');
        })
        .catch(({ message }: Error) => message);
    for (let n = 0; n < 4; n += 1)
      for (const holder of ['one', 'two', 'three']) await failJob(holder, `${holder} ${n}`);
    expect(breaker.state).toBe('closed');
    await failJob('one', 'one 4');
    expect(await call('answered', 'one')).toBe(forOne);
    expect(await call('answered', 'two')).toBe('answered');
  });

  it.each([
    ['something is answered between', 0, 'answered'],
    ['ten seconds pass between', windowMs, 'not-made'],
  ] as const)('stays closed for all when %s', async (_, passMs, outcome) => {
    await call('failed', 'one', 'taxpayer of one');
    await call('failed', 'two', 'taxpayer of two');
    now += passMs;
    await call(outcome, 'other-1');
    await call('failed', 'three', 'taxpayer of three');
    expect(await call('answered', 'other-1')).toBe('answered');
  });

  it('stays closed for the others when it is open for the only holder', async () => {
    await fail('one', 5);
    expect(await call('answered', 'two')).toBe('answered');
  });

  describe('open for all', () => {
    beforeEach(async () => {
      for (const holder of ['one', 'two', 'three']) await call('failed', holder, `taxpayer of ${holder}`);
      now += resetMs;
    });

    it('makes one trial, however late, which all holders wait for', async () => {
      now += 100 * windowMs;
      const trial = slowCall('four');
      const waiting = Promise.all(Array.from({ length: 20 }, (_, n) => call('answered', `holder ${n}`)));
      await new Promise(setImmediate);
      trial.end('failed');
      expect(await waiting).toEqual(Array(20).fill(forAll));
      now += resetMs;
      expect(await call('answered', 'one')).toBe('answered');
      expect(breaker.state).toBe('closed');
    });

    it('takes a trial that was not made for none: the next call is the trial', async () => {
      const notMade = await Promise.all(Array.from({ length: 20 }, (_, n) => call('not-made', `holder ${n}`)));
      expect(notMade).toEqual(Array(20).fill('not-made'));
      expect(breaker.state).toBe('half-open');
      const trial = slowCall('four');
      const waiting = call('answered', 'five');
      trial.end('failed');
      expect(await waiting).toBe(forAll);
    });

    it('lets another holder make the next trial when that of one has failed', async () => {
      await call('failed', 'hostile');
      now += resetMs;
      expect(await call('failed', 'hostile')).toBe(forAll);
      expect(await call('answered', 'honest')).toBe('answered');
      expect(await call('answered', 'hostile')).toBe('answered');
    });

    it('lets the holder whose trial failed make the next one when nobody else has, after the reset time once more', async () => {
      await call('failed', 'only');
      now += 2 * resetMs;
      expect(await call('answered', 'only')).toBe('answered');
    });
  });
});
