import type { TokenView } from '../../../src/datasources/tokenAnswer.js';
import { type Fleet, type FleetOptions, type Member, startFleet } from '../../support/fleet.js';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

let fleet: Fleet;

const freshForMs = (view: TokenView) =>
  Math.max(0, view.readAt + fleet.one.broker.freshMs(view) - fleet.monotonicNow());

async function scene({ createdAgoMs, ...options }: FleetOptions & { createdAgoMs?: number } = {}) {
  fleet = await startFleet({ size: 4, ...options });
  const { sandbox, members } = fleet;
  const created = createdAgoMs === undefined ? {} : { createdAt: new Date(fleet.now() - createdAgoMs).toISOString() };
  const id = fleet.addTaxpayer({ status: 'CREATED', ...created });
  const member = (n: number) => members[n % members.length] as Member;
  const statusAt = async (n: number) => (await member(n).broker.record(id)).value.record.status;
  /** How long the record that is shown is still fresh. */
  const freshFor = async (n = 0) => Math.round(freshForMs(await member(n).broker.record(id)));
  return { sandbox, id, member, statusAt, freshFor, calls: () => sandbox.tokenCalls(id) };
}

describe('A record that does not change', () => {
  it('costs at most 115 token calls in 30 days when four processes are asked every minute', async () => {
    const { statusAt, calls } = await scene();
    for (let n = 0; n < (30 * day) / minute; n += 1) {
      await statusAt(n);
      fleet.advance(minute);
    }
    expect(calls()).toBeLessThanOrEqual(115);
    expect(calls()).toBeGreaterThan(30); // at least one a day
  });

  it('is shown fresher on request, but not below a minute', async () => {
    const { id, member, calls } = await scene({ createdAgoMs: 300 * day });
    await member(0).broker.record(id);
    fleet.advance(minute - 1);
    await member(1).broker.record(id, {}, 0);
    expect(calls()).toBe(1);
    fleet.advance(1);
    await member(1).broker.record(id, {}, 0);
    expect(calls()).toBe(2);
    fleet.advance(day - 1);
    await member(1).broker.record(id);
    expect(calls()).toBe(2);
  });
});

it('A change is remembered by a process whose memory holds no more than one record', async () => {
  const { sandbox } = await scene({ memoryBytes: 2500 });
  const { broker } = fleet.one;
  const ids = fleet.addTaxpayers(10, { createdAt: new Date(fleet.now() - 300 * day).toISOString() });
  const readAll = async () => {
    const freshMs: number[] = [];
    for (const id of ids) freshMs.push(Math.round(freshForMs(await broker.record(id))));
    return freshMs;
  };
  expect(await readAll()).toEqual(ids.map(() => day));
  expect(ids.filter((id) => broker.known(id))).toHaveLength(1);
  for (const id of ids) sandbox.updateTaxpayer(id, { status: 'CONSENT_RECEIVED' });
  fleet.advance(day);
  expect(await readAll()).toEqual(ids.map(() => minute));
  fleet.advance(minute);
  expect(await readAll()).toEqual(ids.map(() => minute));
});

it('A token that the service replaced does not prolong how long a record is shown that changed a moment ago', async () => {
  const { sandbox, id, member, freshFor, calls } = await scene({ createdAgoMs: 10 * hour });
  const job = fleet.addJob(id);
  await member(0).broker.record(id);
  sandbox.updateTaxpayer(id, { status: 'AUTHORIZED' });
  fleet.advance(day);
  await member(0).broker.record(id);
  fleet.advance(30 * second);
  sandbox.rotateToken(id);
  await member(1).jobs.status(id, job);
  expect(calls()).toBe(3);
  expect(await freshFor(1)).toBe(minute);
});

describe('A clock that is ahead', () => {
  it('by a day makes a changed record count neither as unchanged nor as changing for a day', async () => {
    const { sandbox, id, statusAt, freshFor, calls } = await scene({ createdAgoMs: 10 * day, aheadMs: [day] });
    await freshFor(1);
    fleet.advance(2 * day);
    sandbox.updateTaxpayer(id, { status: 'CONSENT_RECEIVED' });
    expect(await statusAt(0)).toBe('CONSENT_RECEIVED');
    expect(await freshFor(1)).toBe(minute);
    expect(calls()).toBe(2);
    fleet.advance(10 * minute);
    await statusAt(1);
    fleet.advance(50 * minute);
    await statusAt(1);
    expect(await freshFor(1)).toBe(6 * minute);
  });

  it('and then put right leaves a record as cheap as before', async () => {
    const { freshFor } = await scene({ createdAgoMs: 10 * hour, aheadMs: [day, day, day, day] });
    expect(await freshFor()).toBe(3.4 * hour);
    fleet.setClocks(-day);
    expect(await freshFor()).toBe(3.4 * hour);
    fleet.advance(3.4 * hour);
    expect(await freshFor()).toBe(0.1 * (10 + 24 + 3.4) * hour);
  });
});
