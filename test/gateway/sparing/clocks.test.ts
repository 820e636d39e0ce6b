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
    expect((await two.jobs.status(id, job)).job.status).toBe('completed');
    expect((await one.jobs.status(id, job)).job.status).toBe('completed');
    expect(control.jobCalls(id, job)).toBe(2);
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

  it('does not stretch the second that the service asked us to wait to a day', async () => {
    const { control, id, one, two } = await scene();
    const fault = { status: 429, headers: { 'Retry-After': '1' } } as const;
    control.arm({ endpoint: 'taxpayerToken', fault, times: 1 });
    expect(await outcomeOf(one.broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
    fleet.advance(-day);
    expect(await outcomeOf(two.broker.record(id))).toBe('answered');
    expect(await outcomeOf(one.broker.record(id))).toBe('answered');
  });

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

  it.each([5, 1000])('costs no call when it was %d ms ahead, as clocks of two machines are', async (skewMs) => {
    const { control, id, job, one, two } = await scene();
    await one.jobs.status(id, job);
    await one.broker.record(id);
    fleet.advance(-skewMs);
    await two.jobs.status(id, job);
    await two.broker.record(id);
    expect([control.jobCalls(id, job), control.tokenCalls(id)]).toEqual([1, 1]);
  });
});
