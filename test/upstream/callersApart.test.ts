import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { pause, realRuntime } from '../../src/process/Runtime.js';
import { startTrustedProvider, type TrustedProvider } from '../support/authenticated.js';
import { type Fleet, outcomeOf, startFleet } from '../support/fleet.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { until } from '../support/until.js';

const readJob = 'query ($t: ID!, $j: ID!) { refreshJob(taxpayerId: $t, jobId: $j) { status } }';

describe('A caller whose jobs the service fails on', () => {
  let provider: TrustedProvider;
  let gateway: TestGateway;
  beforeAll(async () => {
    provider = await startTrustedProvider();
  });
  afterAll(() => provider.stop());
  beforeEach(async () => {
    gateway = await startTestGateway({ ...provider.env, RATE_LIMIT_PER_MINUTE: '0' });
  });
  afterEach(() => gateway.stop());

  /** A caller, a taxpayer that the caller may see, and reads of jobs of that taxpayer. */
  async function caller(subject: string) {
    const { control } = gateway.sandbox;
    const { id } = control.addTaxpayer({ status: 'AUTHORIZED' });
    const claims = { sub: subject, scope: 'refresh-jobs:read taxpayers:read', taxpayer_ids: [id] };
    const authorization = `Bearer ${await provider.token(claims)}`;
    const ask = async (jobId: string) =>
      (await gateway.query(readJob, { t: id, j: jobId }, { authorization })).errors?.[0]?.extensions.code ?? 'answered';
    return { id, ask, addJob: () => control.addJob({ taxpayerId: id, endsAs: null }).jobId };
  }

  it('has calls refused, while those of every other caller are made', async () => {
    const hostile = await caller('hostile');
    const honest = await caller('honest');
    const { control } = gateway.sandbox;
    control.arm({ endpoint: 'refreshJob', taxpayerId: hostile.id, fault: { status: 500 } });
    for (let n = 0; n < 8; n += 1) expect(await hostile.ask(`bad-${n}`)).toBe('UPSTREAM_UNAVAILABLE');
    const made = control.counters().refreshJob;
    expect(await hostile.ask('bad-again')).toBe('UPSTREAM_UNAVAILABLE');
    expect(control.counters().refreshJob).toBe(made);

    const outcomes = [];
    for (let n = 0; n < 10; n += 1) outcomes.push(await honest.ask(honest.addJob()));
    expect(outcomes).toEqual(Array(10).fill('answered'));
    const page = await (await fetch(`${gateway.origin}/metrics`)).text();
    expect(page).toContain('gateway_breaker_open{endpoint="refreshJob"} 1');
  });
});

describe('A caller who asks for more than the service can answer at once', () => {
  it('has a share of the calls under way, and delays nobody else', async () => {
    const provider = await startTrustedProvider();
    const gateway = await startTestGateway({ ...provider.env, RATE_LIMIT_PER_MINUTE: '0', TOKEN_BUDGET_PER_HOUR: '0' });
    try {
      const { control } = gateway.sandbox;
      const [eve, ada] = control.addTaxpayers(2, { status: 'AUTHORIZED' }) as [string, string];
      const authorizationOf = async (sub: string, id: string) => ({
        authorization: `Bearer ${await provider.token({ sub, scope: 'refresh-jobs:read', taxpayer_ids: [id] })}`,
      });
      const [hostile, honest] = [await authorizationOf('hostile', eve), await authorizationOf('honest', ada)];
      const jobOf = (taxpayerId: string) => control.addJob({ taxpayerId, endsAs: null }).jobId;
      await gateway.query(readJob, { t: eve, j: jobOf(eve) }, hostile);
      await gateway.query(readJob, { t: ada, j: jobOf(ada) }, honest);
      const before = control.counters().refreshJob;
      control.setLatency(300);
      const aliases = (n: number) => {
        const field = (m: number) => `a${m}: refreshJob(taxpayerId: "${eve}", jobId: "made-up-${n}-${m}") { status }`;
        return `{ ${Array.from({ length: 60 }, (_, m) => field(m)).join(' ')} }`;
      };
      // 360 reads, 32 at a time: 3.4 s of work, so that none waits for the 10 s after which it is refused.
      const flood = Promise.all(Array.from({ length: 6 }, (_, n) => gateway.query(aliases(n), {}, hostile)));
      await control.whenCalled('refreshJob', before + 64);
      const asked = gateway.query<{ refreshJob: { status: string } }>(readJob, { t: ada, j: jobOf(ada) }, honest);
      const first = await Promise.race([
        asked.then(({ data }) => data?.refreshJob.status),
        flood.then(() => 'the flood'),
      ]);
      expect(first).toBe('PROCESSING');
      // 32 of the hostile caller at once: the first 32, and those that took their places meanwhile.
      expect(control.counters().refreshJob - before).toBeLessThan(5 * 64);
      // On a busy machine some of the flood waits too long for its turn, or a whole request takes too much of its time.
      for (const { errors } of await flood) {
        expect([1, 60]).toContain(errors?.length);
        for (const { extensions } of errors ?? []) expect(['NOT_FOUND', 'RATE_LIMITED']).toContain(extensions.code);
      }
    } finally {
      await gateway.stop();
      await provider.stop();
    }
  });
});

describe('A read that a refused caller began', () => {
  let fleet: Fleet;
  beforeEach(async () => {
    fleet = await startFleet({ breakerResetMs: 60_000 });
  });
  afterEach(() => fleet.stop());

  function scene() {
    const [member] = fleet.members;
    if (!member) throw new Error('The fleet has a member');
    const { control } = fleet.sandbox;
    const taxpayer = control.addTaxpayer({ status: 'AUTHORIZED' });
    const id = fleet.ids.taxpayerId(taxpayer.id);
    const addJob = () => fleet.ids.jobId(control.addJob({ taxpayerId: taxpayer.id, endsAs: null }).jobId);
    return { member, control, id, addJob };
  }

  it('is made again for another who waited for it', async () => {
    const { member, control, id, addJob } = scene();
    const fault = control.arm({ endpoint: 'refreshJob', fault: { status: 500 } });
    for (let n = 0; n < 5; n += 1) {
      expect(await outcomeOf(member.jobs.status(id, addJob(), undefined, { holder: 'hostile' }))).toBe(
        'UPSTREAM_UNAVAILABLE',
      );
    }
    control.disarm(fault);
    const job = addJob();
    const reads = ['hostile', 'hostile', 'honest', undefined].map((holder) =>
      outcomeOf(member.jobs.status(id, job, undefined, { holder })),
    );
    expect(await Promise.all(reads)).toEqual(['UPSTREAM_UNAVAILABLE', 'UPSTREAM_UNAVAILABLE', 'answered', 'answered']);
  });
});

describe('A caller who asks for a page of jobs while others keep the event loop busy', () => {
  it('has as many calls under way as at any other time', async () => {
    const provider = await startTrustedProvider();
    const gateway = await startTestGateway({ ...provider.env, TOKEN_BUDGET_PER_HOUR: '0' });
    const { control } = gateway.sandbox;
    const [ada, bob] = control.addTaxpayers(2, { status: 'AUTHORIZED' }) as [string, string];
    const authorizationOf = async (sub: string, id: string) => ({
      authorization: `Bearer ${await provider.token({ sub, scope: 'refresh-jobs:read', taxpayer_ids: [id] })}`,
    });
    const [page, other] = [await authorizationOf('page', ada), await authorizationOf('other', bob)];
    const { jobId } = control.addJob({ taxpayerId: ada, endsAs: null });
    await gateway.query(readJob, { t: ada, j: jobId }, page); // its access token is in memory
    let isOver = false;
    const burn = () => {
      for (const until = performance.now() + 10; performance.now() < until; );
      if (!isOver) setImmediate(burn);
    };
    burn();
    const asks = async () => {
      while (!isOver) await gateway.query('{ __typename }', {}, other);
    };
    const asking = asks();
    try {
      const gated = control.arm({ endpoint: 'refreshJob', taxpayerId: ada, fault: { gate: 'page' } });
      await pause(realRuntime, 1000); // the load of the last half second counts
      const before = control.counters().refreshJob;
      const field = (m: number) => `a${m}: refreshJob(taxpayerId: "${ada}", jobId: "job-${m}") { status }`;
      const asked = gateway.query(`{ ${Array.from({ length: 50 }, (_, m) => field(m)).join(' ')} }`, {}, page);
      await until(() => control.counters().refreshJob === before + 32);
      control.disarm(gated);
      control.release('page');
      expect((await asked).errors?.map(({ extensions }) => extensions.code)).toEqual(Array(50).fill('NOT_FOUND'));
      expect(control.counters().refreshJob).toBe(before + 50);
    } finally {
      isOver = true;
      await asking;
      await gateway.stop();
      await provider.stop();
    }
  });
});
