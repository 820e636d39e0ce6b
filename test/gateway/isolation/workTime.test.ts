import { describe, expect, it } from '@jest/globals';
import { Quota } from '../../../src/admission/Quota.js';
import { anyone, type Caller } from '../../../src/auth/caller.js';
import { startTrustedProvider } from '../../support/authenticated.js';
import { type AnswerError, startTestGateway } from '../../support/gateway.js';

describe('The time that callers share', () => {
  const admit = (quota: Quota, key: string) =>
    quota.admit({ caller: { ...anyone, kind: 'bearer', key } satisfies Caller, remoteAddress: undefined });
  /** Holds up the event loop by `work` for longer than a measurement, and lets it be measured. */
  async function busy(work: (ms: number) => void): Promise<void> {
    work(700);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const spin = (ms: number) => {
    for (const until = performance.now() + ms; performance.now() < until; );
  };

  it('lets everybody go on while the event loop is not busy', () => {
    const quota = new Quota(0);
    admit(quota, 'honest');
    admit(quota, 'hostile');
    quota.spend('hostile', 250);
    expect(() => admit(quota, 'hostile')).not.toThrow();
  });

  it('lets a caller who is alone take all of it', async () => {
    const quota = new Quota(0);
    await busy(spin);
    admit(quota, 'busy');
    quota.spend('busy', 2500);
    expect(() => admit(quota, 'busy')).not.toThrow();
  });

  it('bills nothing for the time in which the process did not get the processor', async () => {
    const quota = new Quota(0);
    const sleep = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    await busy((ms) => sleep(4 * ms)); // for long, because other threads of the process may collect garbage meanwhile
    admit(quota, 'other');
    admit(quota, 'caller');
    quota.spend('caller', 300);
    expect(() => admit(quota, 'caller')).not.toThrow();
  });

  it("lets one caller's operations begin in turns, ten milliseconds of work in each, while another asks as well", async () => {
    const quota = new Quota(0);
    admit(quota, 'honest');
    admit(quota, 'hostile');
    expect(admit(quota, 'hostile')).toBeUndefined();
    quota.spend('hostile', 10);
    const begun: string[] = [];
    const turn = admit(quota, 'hostile')?.then(() => begun.push('hostile'));
    expect(admit(quota, 'honest')).toBeUndefined();
    await Promise.resolve();
    expect(begun).toEqual([]);
    await turn;
    expect(begun).toEqual(['hostile']);
  });

  it('refuses an operation that was let in before others used up the share', async () => {
    const quota = new Quota(0);
    await busy(spin);
    for (const caller of ['honest', 'hostile']) admit(quota, caller);
    quota.spend('hostile', 250);
    expect(() => quota.refuseBeyondShare('honest')).not.toThrow();
    expect(() => quota.refuseBeyondShare('hostile')).toThrow('too much of the time');
  });
});

describe('A gateway without a rate limit', () => {
  it('still refuses a caller who takes more of the CPU time than its share while another asks as well', async () => {
    const provider = await startTrustedProvider();
    const gateway = await startTestGateway({ ...provider.env, RATE_LIMIT_PER_MINUTE: '0' });

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
  });
});
