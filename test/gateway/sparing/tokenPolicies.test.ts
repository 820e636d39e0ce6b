import { maxTries } from '../../../src/upstream/ResilientFetch.js';
import type { Fault } from '../../support/fault.js';
import { faults } from '../../support/faults.js';
import { type FleetOptions, outcomeOf, startFleet } from '../../support/fleet.js';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Two members, and a taxpayer. */
async function scene({ status = 'AUTHORIZED', ...options }: FleetOptions & { status?: string } = {}) {
  const fleet = await startFleet({ size: 2, ...options });
  const id = fleet.addTaxpayer({ status });
  return { ...fleet, id, calls: () => fleet.sandbox.tokenCalls(id) };
}

describe('token policies', () => {
  it.each(['REJECTED', 'COMPLETED'])('shows a %s record for 24 hours', async (status) => {
    const { id, one, calls, advance } = await scene({ status });
    await one.broker.record(id);
    advance(day - 1);
    await one.broker.record(id);
    expect(calls()).toBe(1);
    advance(1);
    await one.broker.record(id);
    expect(calls()).toBe(2);
  });

  it('uses a token however old it is', async () => {
    const { id, one, two, addJob, calls, advance } = await scene();
    await one.broker.record(id);
    advance(29 * day);
    await two.jobs.status(id, addJob(id));
    expect(calls()).toBe(1);
  });

  it('remembers an unknown taxpayer for 30 seconds', async () => {
    const { one, two, sandbox, ids, advance } = await scene();
    const nobody = ids.taxpayerId('nobody');
    for (const { broker } of [one, two]) expect(await outcomeOf(broker.record(nobody))).toBe('NOT_FOUND');
    expect(sandbox.tokenCalls(nobody)).toBe(1);
    expect(one.events).toEqual(['absent-remembered']);
    sandbox.addTaxpayer({ id: nobody });
    advance(30_000);
    expect(await outcomeOf(two.broker.record(nobody))).toBe('answered');
  });

  it.each([
    ['0', 1],
    ['7200', 3600],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 5],
  ])(
    'stops the calls of the whole fleet, which spend no budget meanwhile, after a 429 with Retry-After: %s',
    async (retryAfter, seconds) => {
      const { id, one, two, sandbox, advance } = await scene({ TOKEN_BUDGET_PER_HOUR: 2 });
      const headers = { 'Retry-After': retryAfter };
      sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 429, headers }, times: 1 });
      const refusal = { code: 'UPSTREAM_RATE_LIMITED', retryAfterSeconds: seconds };
      await expect(one.broker.record(id)).rejects.toMatchObject(refusal);
      advance(seconds * 1000 - 1);
      for (const member of [one, two]) expect(await outcomeOf(member.broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
      expect(sandbox.counters().taxpayerToken).toBe(1);
      advance(1);
      expect(await outcomeOf(two.broker.record(id))).toBe('answered');
    },
  );

  /** One member has read a record, which is no longer fresh; the service now answers with `fault`. */
  async function staleScene(fault: Fault) {
    const fleet = await scene();
    await fleet.one.broker.record(fleet.id);
    fleet.advance(16 * minute);
    fleet.sandbox.arm({ endpoint: 'taxpayerToken', fault });
    return fleet;
  }

  it.each<[string, Fault]>([
    ['a 503', { status: 503 }],
    ['a 403', { status: 403 }],
    ['text that is not JSON', faults.notJson],
    ['a 429', { status: 429 }],
  ])(
    'shows a stale record when the service answers with %s, also on a member that had not read it',
    async (_, fault) => {
      const { id, one, two } = await staleScene(fault);
      for (const { broker, events } of [two, one]) {
        expect(await broker.record(id)).toMatchObject({ stale: true, value: { record: { status: 'AUTHORIZED' } } });
        expect(events).toContain('stale-served');
      }
    },
  );

  it('does not show the record of a taxpayer that the service no longer knows', async () => {
    const { id, one } = await staleScene({ status: 404 });
    expect(await outcomeOf(one.broker.record(id))).toBe('NOT_FOUND');
  });

  it('answers from memory at once, and drops what is over: an absence after 30 seconds, a record after 30 days', async () => {
    const { id, ids, advance, one } = await scene();
    const { broker, cache } = one;
    await broker.record(id);
    expect(broker.record(id)).not.toBeInstanceOf(Promise);
    await outcomeOf(broker.record(ids.taxpayerId('nobody')));
    advance(30_001);
    cache.dropExpired();
    // The cache of `broker` reads the platform's clock, by which nothing has expired, and so shows all that memory has.
    expect(broker.cache.inMemory('nobody')).toBeUndefined();
    expect(broker.cache.inMemory(id)).toBeDefined();
    advance(30 * day);
    cache.dropExpired();
    expect(broker.cache.inMemory(id)).toBeUndefined();
  });

  it('shares a failure with readers that were waiting, also on other members', async () => {
    const { id, one, two, sandbox } = await scene({ UPSTREAM_TIMEOUT_MS: 1000, UPSTREAM_DEADLINE_MS: 2000 });
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { gate: 'never' } });
    const first = outcomeOf(one.broker.record(id));
    await sandbox.whenCalled('taxpayerToken', 1);
    const others = [one, two, two].map(({ broker }) => outcomeOf(broker.record(id)));
    expect(await Promise.all([first, ...others])).toEqual(Array(4).fill('UPSTREAM_TIMEOUT'));
    // one call with its retries; the other readers waited and made no call
    expect(sandbox.tokenCalls(id)).toBeLessThanOrEqual(maxTries);
    sandbox.disarmAll();
    expect(await outcomeOf(two.broker.record(id))).toBe('answered');
  });
});

describe('A clock that was ahead and is put right', () => {
  it.each([-10 * minute, day])(
    'changes neither what is shown nor for how long, when it is set by %d ms',
    async (byMs) => {
      const { sandbox, id, addJob, members, setClocks, advance, ...fleet } = await scene({
        freshness: { minMs: 15 * minute },
      });
      const job = addJob(id);
      const calls = () => [sandbox.jobCalls(id, job), fleet.calls()];
      const readAll = async () => {
        for (const { jobs, broker } of members) {
          await jobs.status(id, job);
          expect((await broker.record(id)).stale).toBeFalsy();
        }
      };
      await readAll();
      setClocks(byMs);
      await readAll();
      expect(calls()).toEqual([1, 1]);
      advance(2000);
      await readAll();
      expect(calls()).toEqual([2, 1]);
      advance(15 * minute);
      await readAll();
      expect(calls()).toEqual([3, 2]);
    },
  );

  it.each([-day, day])(
    'keeps and ends the seconds that the service asked us to wait, when it is set by %d ms',
    async (byMs) => {
      const { sandbox, id, one, members, setClocks, advance, calls } = await scene();
      const fault = { status: 429, headers: { 'Retry-After': '60' } } as const;
      sandbox.arm({ endpoint: 'taxpayerToken', fault, times: 1 });
      expect(await outcomeOf(one.broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
      setClocks(byMs);
      for (const { broker } of members) expect(await outcomeOf(broker.record(id))).toBe('UPSTREAM_RATE_LIMITED');
      expect(calls()).toBe(1);
      advance(60_000);
      for (const { broker } of members) expect(await outcomeOf(broker.record(id))).toBe('answered');
    },
  );
});
