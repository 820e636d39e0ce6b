import { afterEach, describe, expect, it } from '@jest/globals';
import { type Fleet, type FleetOptions, outcomeOf, startFleet } from '../../support/fleet.js';

const minute = 60_000;
const day = 24 * 60 * minute;

describe('a clock that was ahead and is put right', () => {
  let fleet: Fleet;
  afterEach(() => fleet.stop());

  /** Two members on one clock that can be put back, a taxpayer, and a job that does not end by itself. */
  async function scene(options: FleetOptions = {}) {
    fleet = await startFleet({ size: 2, ...options });
    const { control } = fleet.sandbox;
    const id = fleet.ids.taxpayerId(control.addTaxpayer().id);
    control.addJob({ taxpayerId: id, jobId: 'j', endsAs: null });
    const job = fleet.ids.jobId('j');
    const [one, two] = fleet.members;
    if (!one || !two) throw new Error('The fleet has two members');
    return { control, id, job, one, two };
  }

  it('does not freeze the status of a job, neither where it was read nor where the store has it from', async () => {
    const { control, id, job, one, two } = await scene();
    await one.jobs.status(id, job);
    fleet.advance(-10 * minute);
    control.updateJob(id, job, { status: 'completed' });
    expect(one.jobs.held(id, job)).toBeUndefined();
    expect((await two.jobs.status(id, job)).job.status).toBe('completed');
    expect((await one.jobs.status(id, job)).job.status).toBe('completed');
    expect(control.jobCalls(id, job)).toBe(2);
  });

  it('leaves a job as cheap to watch as before: what is read under the right clock replaces what was held', async () => {
    const { control, id, job, one, two } = await scene();
    await Promise.all([one.jobs.status(id, job), two.jobs.status(id, job)]);
    fleet.advance(-10 * minute);
    const { unchangedSince, observedAt } = await one.jobs.status(id, job);
    expect(unchangedSince).toBeLessThanOrEqual(observedAt); // or the polls would stay at their fastest for ten minutes
    await two.jobs.status(id, job);
    expect(one.jobs.held(id, job)).toBeDefined();
    expect(two.jobs.held(id, job)).toBeDefined();
    expect(control.jobCalls(id, job)).toBe(2);
  });

  it('does not read a finished job again', async () => {
    const { control, id, job, one, two } = await scene();
    control.updateJob(id, job, { status: 'completed' });
    await one.jobs.status(id, job);
    fleet.advance(-10 * minute);
    await Promise.all([one.jobs.status(id, job), two.jobs.status(id, job)]);
    expect(control.jobCalls(id, job)).toBe(1);
  });

  it('does not prolong the time for which a record is shown, and costs no token that is only used', async () => {
    const { control, id, one, two } = await scene({ freshness: { minMs: 15 * minute } });
    await Promise.all([one.broker.record(id), two.broker.record(id)]);
    fleet.advance(-10 * minute);
    await Promise.all([one.broker.credential(id), two.broker.credential(id)]);
    expect(control.tokenCalls(id)).toBe(1);
    await one.broker.record(id);
    await two.broker.record(id);
    expect(control.tokenCalls(id)).toBe(2);
    fleet.advance(15 * minute - 1);
    for (const { broker } of [one, two]) expect(await broker.record(id)).toMatchObject({ stale: false });
    expect(control.tokenCalls(id)).toBe(2);
    fleet.advance(1);
    await Promise.all([one.broker.record(id), two.broker.record(id)]);
    expect(control.tokenCalls(id)).toBe(3);
  });

  it('does not prolong the time for which the absence of a taxpayer is remembered', async () => {
    const { control, one } = await scene();
    const nobody = fleet.ids.taxpayerId('nobody');
    await expect(one.broker.credential(nobody)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    fleet.advance(-10 * minute);
    control.addTaxpayer({ id: 'nobody' });
    await expect(one.broker.credential(nobody)).resolves.toBeDefined();
  });

  it('does not stretch the second that the service asked us to wait to a day', async () => {
    const { control, id, one, two } = await scene();
    const fault = { status: 429, headers: { 'Retry-After': '1' } } as const;
    control.arm({ endpoint: 'taxpayerToken', fault, times: 1 });
    expect(await outcomeOf(one.broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
    fleet.advance(-day);
    expect(await outcomeOf(two.broker.record(id))).toBe('answered');
    expect(await outcomeOf(one.broker.record(id))).toBe('answered');
  });

  it.each([5, 10_000])(
    'does not shorten a silence when it was %d ms ahead, as clocks of two machines are',
    async (ms) => {
      const { control, id, one, two } = await scene();
      const fault = { status: 429, headers: { 'Retry-After': '60' } } as const;
      control.arm({ endpoint: 'taxpayerToken', fault, times: 1 });
      expect(await outcomeOf(one.broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
      fleet.advance(-ms);
      expect(await outcomeOf(two.broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
      expect(control.tokenCalls(id)).toBe(1);
    },
  );

  it('does not stretch the cool-down after a refused token to a day', async () => {
    const { control, id, job, one, two } = await scene();
    const fault = { status: 401 } as const;
    control.arm({ endpoint: 'refreshJob', fault, times: 2 });
    expect(await outcomeOf(one.jobs.status(id, job))).toBe('TAXPAYER_NOT_AUTHORIZED');
    expect(control.tokenCalls(id)).toBe(2);
    fleet.advance(-day);
    control.arm({ endpoint: 'refreshJob', fault, times: 1 });
    expect(await outcomeOf(two.jobs.status(id, job))).toBe('answered');
    expect(control.tokenCalls(id)).toBe(3);
  });

  it('does not stretch the hour of a spent budget to a day', async () => {
    const { control, id, one, two } = await scene({ budgetPerHour: 1 });
    await one.broker.record(id);
    const another = fleet.ids.taxpayerId(control.addTaxpayer().id);
    expect(await outcomeOf(two.broker.record(another))).toBe('TOKEN_BUDGET_EXHAUSTED');
    fleet.advance(-day);
    expect(await outcomeOf(two.broker.record(another))).toBe('answered');
  });

  it.each([5, 1000])('costs no call when it was %d ms ahead, as clocks of two machines are', async (skewMs) => {
    const { control, id, job, one, two } = await scene();
    await one.jobs.status(id, job);
    await one.broker.record(id);
    fleet.advance(-skewMs);
    await two.jobs.status(id, job);
    await two.broker.record(id);
    expect([control.jobCalls(id, job), control.tokenCalls(id)]).toEqual([1, 1]);
  });

  it('costs no token call when it was ten seconds ahead', async () => {
    const { control, id, one, two } = await scene();
    await one.broker.record(id);
    fleet.advance(-10_000);
    await two.broker.record(id);
    expect(control.tokenCalls(id)).toBe(1);
  });
});

describe('a machine whose clock is ahead of the others', () => {
  let fleet: Fleet;
  afterEach(() => fleet.stop());

  it('does not make the others keep using its token after the service has refused it', async () => {
    const aheadMs = 8000; // no more than two machines may be apart, so that its entries count as new
    fleet = await startFleet({ size: 3, aheadMs: [aheadMs, 0, 0] });
    const { control } = fleet.sandbox;
    const id = fleet.ids.taxpayerId(control.addTaxpayer().id);
    const [ahead, one, two] = fleet.members as [Fleet['members'][0], Fleet['members'][0], Fleet['members'][0]];
    const refusals = async (member: Fleet['members'][0], name: string) => {
      control.addJob({ taxpayerId: id, jobId: name, endsAs: null });
      expect(await outcomeOf(member.jobs.status(id, fleet.ids.jobId(name)))).toBe('answered');
      return control.jobCalls(id, name) - 1;
    };
    await ahead.broker.credential(id);
    await Promise.all([one.broker.credential(id), two.broker.credential(id)]);
    control.rotateToken(id);
    expect(await refusals(one, 'a')).toBe(1);
    expect(await refusals(two, 'b')).toBe(1);
    expect(await refusals(two, 'c')).toBe(0);
    expect(await refusals(ahead, 'd')).toBe(1);
    expect(await refusals(ahead, 'e')).toBe(0);
    expect(control.tokenCalls(id)).toBe(2);
  });
});
