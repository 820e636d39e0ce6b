import { afterEach, describe, expect, it } from '@jest/globals';
import { maxTries } from '../../../src/upstream/ResilientFetch.js';
import { faults } from '../../support/faults.js';
import { type Fleet, type FleetOptions, type Member, outcomeOf, startFleet } from '../../support/fleet.js';

const minute = 60_000;
const hour = 60 * minute;

describe('token policies', () => {
  let fleet: Fleet;
  afterEach(() => fleet.stop());

  /** A fleet, a taxpayer, and the first two members of the fleet. */
  async function scene(options: FleetOptions & { status?: string } = {}) {
    const { status = 'AUTHORIZED', ...fleetOptions } = options;
    fleet = await startFleet({ size: 2, ...fleetOptions });
    const taxpayer = fleet.sandbox.control.addTaxpayer({ status });
    const id = fleet.ids.taxpayerId(taxpayer.id);
    const [one, two] = fleet.members as [Member, Member];
    return { id, one, two, control: fleet.sandbox.control, calls: () => fleet.sandbox.control.tokenCalls(id) };
  }

  it.each(['REJECTED', 'COMPLETED'])('shows a %s record for 24 hours', async (status) => {
    const { id, one, calls } = await scene({ status });
    await one.broker.record(id);
    fleet.advance(24 * hour - 1);
    await one.broker.record(id);
    expect(calls()).toBe(1);
    fleet.advance(1);
    await one.broker.record(id);
    expect(calls()).toBe(2);
  });

  it('uses a token however old it is', async () => {
    const { id, one, two, calls } = await scene();
    await one.broker.record(id);
    fleet.advance(29 * 24 * hour);
    await two.broker.credential(id);
    expect(calls()).toBe(1);
  });

  it('remembers an unknown taxpayer for 30 seconds', async () => {
    const { one, two, control } = await scene();
    const nobody = fleet.ids.taxpayerId('nobody');
    expect(await outcomeOf(one.broker.record(nobody))).toBe('NOT_FOUND');
    expect(await outcomeOf(two.broker.record(nobody))).toBe('NOT_FOUND');
    expect(control.tokenCalls(nobody)).toBe(1);
    expect(one.events).toEqual(['absent-remembered']);
    control.addTaxpayer({ id: 'nobody' });
    fleet.advance(30_000);
    expect(await outcomeOf(two.broker.record(nobody))).toBe('answered');
  });

  it.each([
    ['0', 1],
    ['7200', 3600],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 5],
  ])('also stops the calls of the whole fleet after a 429 with Retry-After: %s', async (retryAfter, seconds) => {
    const { id, one, two, control } = await scene();
    const headers = { 'Retry-After': retryAfter };
    control.arm({ endpoint: 'taxpayerToken', fault: { status: 429, headers }, times: 1 });
    const refusal = { code: 'UPSTREAM_RATE_LIMITED', retryAfterSeconds: seconds };
    await expect(one.broker.record(id)).rejects.toMatchObject(refusal);
    fleet.advance(seconds * 1000 - 1);
    for (const member of [one, two]) expect(await outcomeOf(member.broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
    expect(control.counters().taxpayerToken).toBe(1);
    fleet.advance(1);
    expect(await outcomeOf(two.broker.record(id))).toBe('answered');
  });

  it.each([
    ['a 503', { status: 503 }],
    ['a 403', { status: 403 }],
    ['text that is not JSON', faults.notJson],
    ['a 429', { status: 429 }],
  ] as const)('shows a stale record when the service answers with %s', async (_, fault) => {
    const { id, one, control } = await scene();
    await one.broker.record(id);
    fleet.advance(16 * minute);
    control.arm({ endpoint: 'taxpayerToken', fault });
    expect(await one.broker.record(id)).toMatchObject({ stale: true, record: { status: 'AUTHORIZED' } });
    expect(one.events).toContain('stale-served');
  });

  it('shows a stale record on a member that had not read it before', async () => {
    const { id, one, two, control } = await scene();
    await one.broker.record(id);
    fleet.advance(16 * minute);
    control.arm({ endpoint: 'taxpayerToken', fault: { status: 500 } });
    expect(await two.broker.record(id)).toMatchObject({ stale: true });
  });

  it('does not show the record of a taxpayer that the service no longer knows', async () => {
    const { id, one, control } = await scene();
    await one.broker.record(id);
    fleet.advance(16 * minute);
    control.arm({ endpoint: 'taxpayerToken', fault: { status: 404 } });
    expect(await outcomeOf(one.broker.record(id))).toBe('NOT_FOUND');
  });

  it('answers from memory at once, and drops what is over: an absence after 30 seconds, a record after 30 days', async () => {
    const { id, one } = await scene();
    const nobody = fleet.ids.taxpayerId('nobody');
    await one.broker.record(id);
    expect(one.broker.record(id)).not.toBeInstanceOf(Promise);
    await outcomeOf(one.broker.record(nobody));
    fleet.advance(30_000);
    one.broker.dropExpired();
    expect(one.broker.stale(id)).toBeDefined();
    fleet.advance(30 * 24 * hour);
    one.broker.dropExpired();
    expect(one.broker.stale(id)).toBeUndefined();
    expect(one.events).toEqual(['absent-remembered', 'stale-served']);
  });

  it('shows watchers no stale record', async () => {
    const { id, one, control } = await scene();
    await one.broker.record(id);
    fleet.advance(24 * hour);
    control.arm({ endpoint: 'taxpayerToken', fault: { status: 503 } });
    expect(await outcomeOf(one.broker.poll(id, {}))).not.toBe('answered');
    expect(await one.broker.record(id)).toMatchObject({ stale: true });
  });

  it('shares a failure with readers that were waiting, also on other members', async () => {
    const { id, one, two, control } = await scene({ callMs: 2000 });
    control.arm({ endpoint: 'taxpayerToken', fault: { gate: 'never' } });
    const first = outcomeOf(one.broker.record(id));
    await control.whenCalled('taxpayerToken', 1);
    const others = [one, two, two].map(({ broker }) => outcomeOf(broker.record(id)));
    expect(await Promise.all([first, ...others])).toEqual(Array(4).fill('UPSTREAM_TIMEOUT'));
    // one call with its retries; the other readers waited and made no call
    expect(control.tokenCalls(id)).toBeLessThanOrEqual(maxTries);
    control.disarmAll();
    expect(await outcomeOf(two.broker.record(id))).toBe('answered');
  });
});

describe('Clocks', () => {
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
      const [one, two] = fleet.members as [Member, Member];
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
  });
});
