import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Trail } from '../../../src/Trail.js';
import { type Fleet, type Member, startFleet } from '../../support/fleet.js';
import { until } from '../../support/until.js';

describe('RefreshJobs', () => {
  let fleet: Fleet;
  let one: Member;
  let two: Member;
  beforeEach(async () => {
    fleet = await startFleet({ size: 2 });
    [one, two] = fleet.members as [Member, Member];
  });
  afterEach(() => fleet.stop());

  function newJob(status: 'processing' | 'completed' | 'failed' = 'processing') {
    const { control } = fleet.sandbox;
    const { id } = control.addTaxpayer();
    const { jobId } = control.addJob({ taxpayerId: id, status });
    return { taxpayer: fleet.ids.taxpayerId(id), job: fleet.ids.jobId(jobId) };
  }
  const calls = () => fleet.sandbox.control.counters().refreshJob;
  /** Whether memory answers. */
  const isHeld = async ({ taxpayer, job }: ReturnType<typeof newJob>, maxAgeMs?: number) => {
    const trail = new Trail();
    await one.jobs.status(taxpayer, job, maxAgeMs, { trail });
    return trail.memory === 1;
  };

  it('answers from memory for a second, and then asks again', async () => {
    const { taxpayer, job } = newJob();
    const trails = [new Trail(), new Trail(), new Trail()];
    for (const [n, trail] of trails.entries()) {
      if (n === 2) fleet.advance(1001);
      await one.jobs.status(taxpayer, job, undefined, { trail });
    }
    expect(trails.map(({ memory, service }) => [memory, service])).toEqual([
      [0, 2], // the token and the status
      [1, 0],
      [0, 1],
    ]);
    expect(calls()).toBe(2);
  });

  it.each(['completed', 'failed'] as const)('never asks again for a job that has %s', async (status) => {
    const { taxpayer, job } = newJob(status);
    for (const { jobs } of [one, two, one]) {
      expect(await jobs.status(taxpayer, job)).toMatchObject({ job: { status } });
      fleet.advance(60_000);
    }
    expect(calls()).toBe(1);
  });

  it('forgets the jobs of one taxpayer and of nobody else', async () => {
    const [mine, other] = [newJob(), newJob()];
    for (const { taxpayer, job } of [mine, other]) await one.jobs.status(taxpayer, job);
    one.jobs.forget((id) => id === mine.taxpayer);
    expect([await isHeld(mine), await isHeld(other)]).toEqual([false, true]);
    one.jobs.forget(() => true);
    expect(await isHeld(other)).toBe(false);
  });

  it('drops from memory what the store keeps no longer: a status that can change after an hour', async () => {
    const wanted = newJob();
    await one.jobs.status(wanted.taxpayer, wanted.job);
    fleet.advance(3_600_000 - 1);
    one.jobs.dropExpired();
    expect(await isHeld(wanted, Infinity)).toBe(true);
    fleet.advance(1);
    one.jobs.dropExpired();
    expect(await isHeld(wanted, Infinity)).toBe(false);
  });

  it('tells for how long a status has not changed', async () => {
    const { taxpayer, job } = newJob();
    const first = await one.jobs.status(taxpayer, job);
    fleet.advance(5000);
    const second = await one.jobs.status(taxpayer, job);
    expect(second.observedAt).toBe(first.observedAt + 5000);
    expect(second.unchangedForMs - first.unchangedForMs).toBeGreaterThanOrEqual(5000);
    fleet.sandbox.control.updateJob(taxpayer, job, { status: 'completed' });
    fleet.advance(5000);
    expect(await one.jobs.status(taxpayer, job)).toMatchObject({ unchangedForMs: 0 });
  });

  describe('that is shown until it is old', () => {
    const shown = async (times: number, { taxpayer, job }: ReturnType<typeof newJob>) => {
      for (let n = 0; n < times; n += 1) await one.jobs.status(taxpayer, job);
    };

    it('is read anew before its second is over, once, and nobody waits for it', async () => {
      const wanted = newJob();
      await shown(11, wanted);
      fleet.advance(749);
      await shown(11, wanted);
      expect(calls()).toBe(1);
      fleet.advance(201);
      const { taxpayer, job } = wanted;
      fleet.sandbox.control.updateJob(taxpayer, job, { status: 'completed' });
      expect(one.jobs.status(taxpayer, job)).toMatchObject({ job: { status: 'processing' } });
      await shown(11, wanted);
      await until(async () => (await one.jobs.status(taxpayer, job)).job.status === 'completed');
      expect(calls()).toBe(2);
    });

    it('is not read anew when there was no place for it until its second was over: nobody may be asking any more', async () => {
      const { control } = fleet.sandbox;
      const call = { holder: 'somebody' };
      const read = ({ taxpayer, job }: ReturnType<typeof newJob>) => one.jobs.status(taxpayer, job, undefined, call);
      const wanted = newJob();
      await shown(10, wanted);
      const places = 32;
      const gate = 'others';
      control.arm({ endpoint: 'refreshJob', fault: { gate }, times: places });
      const reading = Array.from({ length: places }, () => read(newJob()));
      await until(() => calls() === 1 + places);
      fleet.advance(960);
      read(wanted);
      await new Promise(setImmediate);
      fleet.advance(40);
      control.release(gate);
      await Promise.all(reading);
      await read(newJob());
      expect(calls()).toBe(1 + places + 1);
    });

    it('is shown until its second is over when it could not be read anew, which is tried once', async () => {
      const { control } = fleet.sandbox;
      const wanted = newJob();
      await shown(10, wanted);
      control.arm({ endpoint: 'refreshJob', fault: { status: 422 } });
      fleet.advance(960);
      await shown(1, wanted);
      await until(() => calls() > 1);
      await isHeld(newJob()).catch(() => {}); // by then the read that failed is over
      await shown(10, wanted);
      await isHeld(newJob()).catch(() => {});
      expect(control.jobCalls(wanted.taxpayer, wanted.job)).toBe(2);
      fleet.advance(40);
      await expect(shown(1, wanted)).rejects.toMatchObject({ code: 'UPSTREAM_REJECTED' });
    });
  });
});
