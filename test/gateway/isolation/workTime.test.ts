import { describe, expect, it } from '@jest/globals';
import { recentLoad, WorkTime } from '../../../src/admission/WorkTime.js';
import { startTrustedProvider } from '../../support/authenticated.js';
import { type AnswerError, startTestGateway } from '../../support/gateway.js';

function workTimeOn(utilization = 0.6, ranShare = 1) {
  const clock = { nowMs: 0 };
  const load = { utilization: () => utilization, ranShare: () => ranShare };
  return { clock, work: new WorkTime({ now: () => clock.nowMs, ...load }) };
}

describe('The time that callers share', () => {
  it('refuses a caller who took more than a tenth of it while another asks as well', () => {
    const { work } = workTimeOn();
    work.admit('honest');
    work.admit('hostile');
    work.spend('hostile', 250);
    expect(() => work.admit('hostile')).toThrow(
      expect.objectContaining({ code: 'RATE_LIMITED', retryAfterSeconds: 2 }),
    );
    expect(() => work.admit('honest')).not.toThrow();
  });

  it('lets everybody go on while the event loop is not busy', () => {
    const { work } = workTimeOn(0.4);
    work.admit('honest');
    work.admit('hostile');
    work.spend('hostile', 250);
    expect(() => work.admit('hostile')).not.toThrow();
  });

  it('lets a caller who is alone take all of it', () => {
    const { work, clock } = workTimeOn();
    work.admit('honest');
    work.admit('busy');
    clock.nowMs = 5000;
    for (let n = 0; n < 100; n += 1) {
      work.admit('busy');
      work.spend('busy', 100);
    }
  });

  it('bills a quarter to the callers of a process that got a quarter of the processor', () => {
    const { work } = workTimeOn(0.6, 0.25);
    work.admit('other');
    work.admit('caller');
    work.spend('caller', 400);
    expect(() => work.admit('caller')).not.toThrow();
    work.spend('caller', 400);
    expect(() => work.admit('caller')).toThrow(expect.objectContaining({ code: 'RATE_LIMITED', retryAfterSeconds: 1 }));
  });

  it('measures how much of the time the process ran', () => {
    const work = new WorkTime({ ...recentLoad(), utilization: () => 1 });
    // Holds up the event loop, but does not run; for long, because other threads of the process may collect garbage meanwhile.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500);
    work.admit('other');
    work.admit('caller');
    work.spend('caller', 300);
    expect(() => work.admit('caller')).not.toThrow();
  });

  it('admits a caller again when its share has made up for what it took', () => {
    const { work, clock } = workTimeOn();
    work.spend('hostile', 250);
    clock.nowMs = 7000;
    work.admit('honest');
    expect(() => work.admit('hostile')).not.toThrow();
  });

  it("lets one caller's operations begin in turns, ten milliseconds of work in each, while another asks as well", async () => {
    const { work } = workTimeOn();
    work.admit('honest');
    work.admit('hostile');
    const begun: string[] = [];
    const begin = async (holder: string, ms: number) => {
      await work.admit(holder);
      begun.push(holder);
      work.spend(holder, ms);
    };
    const all = ['hostile', 'hostile', 'hostile', 'hostile', 'hostile'].map((holder) => begin(holder, 5));
    const turns = new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
    await new Promise<void>((resolve) => queueMicrotask(resolve));
    expect(begun).toHaveLength(5);
    expect(work.admit('honest')).toBeUndefined();
    const later = [begin('hostile', 5), begin('hostile', 5), begin('hostile', 5)];
    await turns;
    expect(begun.length).toBeLessThan(8);
    await Promise.all([...all, ...later]);
    expect(begun).toHaveLength(8);
  });

  it('does not bound callers who cannot be told apart', () => {
    const { work } = workTimeOn();
    work.admit('honest');
    work.spend(undefined, 10_000);
    expect(() => work.admit(undefined)).not.toThrow();
  });
});

describe('A gateway without a rate limit', () => {
  it('still refuses a caller who takes more of the CPU time than its share while another asks as well', async () => {
    const provider = await startTrustedProvider();
    const gateway = await startTestGateway({ ...provider.env, RATE_LIMIT_PER_MINUTE: '0' });
    try {
      const of = async (sub: string) => ({ authorization: `Bearer ${await provider.token({ sub })}` });
      const [hostile, honest] = [await of('hostile'), await of('honest')];
      let refusal: AnswerError | undefined;
      for (let n = 0; refusal === undefined && n < 500; n += 1) {
        const aliases = Array.from({ length: 60 }, (_, m) => `a${n}_${m}_${'x'.repeat(150)}: __typename`);
        const asked = await Promise.all([
          ...Array.from({ length: 4 }, (_, m) => gateway.query(`query Q${m} { ${aliases.join(' ')} }`, {}, hostile)),
          gateway.query('{ __typename }', {}, honest),
        ]);
        expect(asked.pop()?.errors).toBeUndefined();
        refusal = asked.find(({ status }) => status === 429)?.errors?.[0];
      }
      expect(refusal).toMatchObject({
        message: 'Your operations take too much of the time that all callers share',
        extensions: { code: 'RATE_LIMITED', retryable: true },
      });
    } finally {
      await gateway.stop();
      await provider.stop();
    }
  });
});
