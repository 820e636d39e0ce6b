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

  it.each([-10 * minute, day])(
    'changes neither what is shown nor for how long, when it is set by %d ms',
    async (byMs) => {
      const { control, id, job, one, two } = await scene({ freshness: { minMs: 15 * minute } });
      const calls = () => [control.jobCalls(id, job), control.tokenCalls(id)];
      const readAll = async () => {
        for (const { jobs, broker } of [one, two]) {
          await jobs.status(id, job);
          expect(await broker.record(id)).toMatchObject({ stale: false });
        }
      };
      await readAll();
      fleet.setClocks(byMs);
      await readAll();
      expect(calls()).toEqual([1, 1]);
      fleet.advance(2000);
      await readAll();
      expect(calls()).toEqual([2, 1]);
      fleet.advance(15 * minute);
      await readAll();
      expect(calls()).toEqual([3, 2]);
    },
  );

  it.each([-day, day])(
    'keeps and ends the seconds that the service asked us to wait, when it is set by %d ms',
    async (byMs) => {
      const { control, id, one, two } = await scene();
      const fault = { status: 429, headers: { 'Retry-After': '60' } } as const;
      control.arm({ endpoint: 'taxpayerToken', fault, times: 1 });
      expect(await outcomeOf(one.broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
      fleet.setClocks(byMs);
      for (const { broker } of [one, two]) expect(await outcomeOf(broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
      expect(control.tokenCalls(id)).toBe(1);
      fleet.advance(60_000);
      for (const { broker } of [one, two]) expect(await outcomeOf(broker.record(id))).toBe('answered');
    },
  );

  it.each([-day, day])('keeps and ends the cool-down after a refused token, when it is set by %d ms', async (byMs) => {
    const { control, id, job, one, two } = await scene();
    control.arm({ endpoint: 'refreshJob', fault: { status: 401 }, times: 3 });
    expect(await outcomeOf(one.jobs.status(id, job))).toBe('TAXPAYER_NOT_AUTHORIZED');
    fleet.setClocks(byMs);
    expect(await outcomeOf(two.jobs.status(id, job))).toBe('TAXPAYER_NOT_AUTHORIZED');
    expect(control.tokenCalls(id)).toBe(2);
    fleet.advance(minute);
    control.arm({ endpoint: 'refreshJob', fault: { status: 401 }, times: 1 });
    expect(await outcomeOf(two.jobs.status(id, job))).toBe('answered');
    expect(control.tokenCalls(id)).toBe(3);
  });
});
