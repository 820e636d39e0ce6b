import { afterEach, describe, expect, it } from '@jest/globals';
import { Trail } from '../../../src/observability/Trail.js';
import { type Fleet, type FleetOptions, type Member, notedOnce, outcomeOf, startFleet } from '../../support/fleet.js';

const minuteMs = 60_000;

describe('TokenBroker', () => {
  let fleet: Fleet;
  afterEach(() => fleet.stop());

  async function scene(options: FleetOptions = {}) {
    fleet = await startFleet(options);
    const [{ broker, jobs, events }] = fleet.members as [Member];
    const { control } = fleet.sandbox;
    const newTaxpayer = () => fleet.ids.taxpayerId(control.addTaxpayer().id);
    const fail = (status: number) => control.arm({ endpoint: 'taxpayerToken', fault: { status } });
    return { broker, jobs, events, control, newTaxpayer, fail };
  }

  it('answers from memory at once, and says so', async () => {
    const { broker, newTaxpayer } = await scene();
    const id = newTaxpayer();
    const trails = [new Trail(), new Trail()];
    for (const trail of trails) await broker.record(id, undefined, { trail });
    expect(trails.map(({ memory, service }) => [memory, service])).toEqual([
      [0, 1],
      [1, 0],
    ]);
    expect(broker.record(id)).not.toBeInstanceOf(Promise);
  });

  it('does once per operation what is asked for alike', async () => {
    const { broker, newTaxpayer } = await scene();
    const id = newTaxpayer();
    const { names, once } = notedOnce();
    await broker.record(id, undefined, { once });
    expect(names).toEqual([`token Infinity ${id}`]);
  });

  it('holds a record for as long as it would show it, and no absence', async () => {
    const { broker, newTaxpayer } = await scene({ freshness: { maxMs: 10 * minuteMs, minMs: 10 * minuteMs } });
    const id = newTaxpayer();
    expect(broker.held(id)).toBeUndefined();
    const view = await broker.record(id);
    expect(broker.held(id)).toBe(view);
    fleet.advance(broker.freshForMs(view) - 1);
    expect(broker.held(id)).toBe(view);
    fleet.advance(1);
    expect(broker.held(id)).toBeUndefined();
    expect(broker.stale(id)).toEqual({ ...view, stale: true });

    const nobody = fleet.ids.taxpayerId('nobody');
    expect(await outcomeOf(broker.record(nobody))).toBe('NOT_FOUND');
    expect(broker.held(nobody)).toBeUndefined();
    expect(broker.stale(nobody)).toBeUndefined();
  });

  it('drops from memory what is over: an absence after 30 seconds, a record after 30 days', async () => {
    const { broker, newTaxpayer, events } = await scene();
    const [id, nobody] = [newTaxpayer(), fleet.ids.taxpayerId('nobody')];
    await broker.record(id);
    await outcomeOf(broker.record(nobody));
    fleet.advance(30_000);
    broker.dropExpired();
    expect(broker.stale(id)).toBeDefined();
    fleet.advance(30 * 24 * 60 * minuteMs);
    broker.dropExpired();
    expect(broker.stale(id)).toBeUndefined();
    expect(events).toEqual(['absent-remembered', 'stale-served']);
  });

  it('never shows watchers a stale record, and stops them at their share of the budget', async () => {
    const { broker, events, fail, newTaxpayer } = await scene({ budgetPerHour: 64, budgetWatchShare: 1 / 64 });
    const ids = [newTaxpayer(), newTaxpayer()];
    const polled = await Promise.all(ids.map((id) => outcomeOf(broker.poll(id, {}))));
    expect(polled.sort()).toEqual(['TOKEN_BUDGET_EXHAUSTED', 'answered']);
    expect(events).toContain('watch-share-exhausted');
    expect(events).not.toContain('budget-exhausted');
    const id = newTaxpayer();
    await broker.record(id);
    fleet.advance(24 * 60 * minuteMs);
    fail(503);
    expect(await outcomeOf(broker.poll(id, {}))).not.toBe('answered');
    expect(await broker.record(id)).toMatchObject({ stale: true });
  });

  it('says whose share is used up, and that the budget is', async () => {
    const { broker, events, newTaxpayer } = await scene({ budgetPerHour: 4, budgetCallerShare: 0.25 });
    const read = (holder: string) => outcomeOf(broker.record(newTaxpayer(), undefined, { holder }));
    for (const holder of ['one', 'one']) await read(holder);
    expect(events).toContain('caller-share-exhausted');
    expect(events).not.toContain('budget-exhausted');
    for (const holder of ['two', 'three', 'four', 'five']) await read(holder);
    expect(events).toContain('budget-exhausted');
  });

  it('shows an older record only where the service gave no answer', async () => {
    const { broker, events, fail, control, newTaxpayer } = await scene();
    const id = newTaxpayer();
    await broker.record(id);
    fleet.advance(48 * 60 * minuteMs);
    const rule = fail(404);
    expect(await outcomeOf(broker.record(id))).toBe('NOT_FOUND');
    control.disarm(rule);
    expect(events).toEqual(['absent-remembered']);
  });

  it('says what was refused, and counts the token that it replaced', async () => {
    const { broker, jobs, events, control, newTaxpayer } = await scene();
    await expect(broker.record(fleet.ids.taxpayerId('nobody'))).rejects.toMatchObject({
      ...{ message: 'The service knows no such taxpayer', reason: 'HTTP 404' },
    });
    const id = newTaxpayer();
    const job = fleet.ids.jobId(control.addJob({ taxpayerId: id }).jobId);
    await jobs.status(id, job);
    control.rotateToken(id);
    fleet.advance(minuteMs);
    await jobs.status(id, job);
    expect(events).toEqual(['absent-remembered', 'credential-replaced']);

    control.arm({ endpoint: 'refreshJob', fault: { status: 401 } });
    fleet.advance(2 * minuteMs);
    await expect(jobs.status(id, job)).rejects.toMatchObject({
      message: "The service refuses this taxpayer's token, a new one included",
      reason: "HTTP 401 to the taxpayer's token, a new one too",
    });
  });
});
