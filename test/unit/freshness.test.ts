import { Secret } from '../../src/config/Secret.js';
import { freshMsOf, unchangedMsOf } from '../../src/datasources/freshness.js';
import { tokenAnswerCodec } from '../../src/datasources/tokenAnswer.js';
import type { TokenRecord } from '../../src/datasources/wire.js';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const rule = { share: 0.1, minMs: minute, maxMs: day };

const record = (changes: Partial<TokenRecord> = {}) =>
  ({
    accessToken: new Secret('a-token'),
    taxpayerId: 'a-taxpayer',
    name: 'A Name',
    metadata: { crm: { ids: [1, 2] }, note: 'x' },
    providerId: 'irs',
    createdAt: '2026-01-01T00:00:00Z',
    status: 'AUTHORIZED',
    ...changes,
  }) as TokenRecord;

describe('How long a record is fresh', () => {
  it.each<[Partial<typeof rule>, number, number]>([
    [{}, 0, minute],
    [{}, 9 * minute, minute],
    [{}, day, 2.4 * hour],
    [{}, 10 * day, day],
    [{}, 12 * minute + 7, 72_001],
    [{ share: 0 }, 30 * day, minute],
    [{ share: 1 }, 3 * hour, 3 * hour],
    [{ share: 1 }, 3 * day, day],
    [{ minMs: hour, maxMs: hour }, 0, hour],
    [{ share: 0, minMs: 15 * minute }, 30 * day, 15 * minute],
  ])('by the usual rule with %j, when it had been unchanged for %d ms', (changes, unchangedForMs, freshMs) => {
    expect(freshMsOf({ ...rule, ...changes }, { record: record(), unchangedForMs })).toBe(freshMs);
  });

  it.each<[string, number, string, number]>([
    ['when it was first read', 0, 'AUTHORIZED', 5 * second],
    ['when its part has been broken for 20 s', 20 * second, 'AUTHORIZED', 20 * second],
    ['when its part has been broken for a day', day, 'AUTHORIZED', 2.4 * hour],
    ['with a final status', 0, 'COMPLETED', 5 * second],
  ])('of which a part is broken, %s', (_, brokenMs, status, freshMs) => {
    const faults = { metadata: { message: 'broken', reason: 'broken' } };
    const broken = record({ status, metadata: null, faults });
    expect(freshMsOf(rule, { record: broken, unchangedForMs: brokenMs })).toBe(freshMs);
    expect(unchangedMsOf(broken)).toBe(0);
  });
});

describe('For how long a record is unchanged', () => {
  /** A reading of two hours without a change, `agoMs` ago. */
  const readAgo = (agoMs: number, was = record()) => ({
    value: { record: was, unchangedForMs: 2 * hour },
    readAt: performance.now() - agoMs,
  });
  const before = readAgo(hour);

  it.each<[string, (now: number) => string | null, number]>([
    ['when it was created', (now) => new Date(now - day).toISOString(), day],
    ['not at all, when it has no time of creation', () => null, 0],
    ['not at all, when it was created in the future', (now) => new Date(now + day).toISOString(), 0],
  ])('that nobody read before: since %s', (_, createdAt, forMs) => {
    const found = unchangedMsOf(record({ createdAt: createdAt(Date.now()) }));
    expect(found).toBeGreaterThanOrEqual(forMs);
    expect(found).toBeLessThan(forMs + minute);
  });

  it('that was read before as it is: since then, whatever its token', () => {
    expect(unchangedMsOf(record(), before) / hour).toBeCloseTo(3);
    expect(unchangedMsOf(record({ accessToken: new Secret('another') }), before) / hour).toBeCloseTo(3);
    expect(unchangedMsOf(record(), readAgo(-day))).toBe(2 * hour); // the store's clock was set back
  });

  it.each<Partial<TokenRecord>>([
    { status: 'REJECTED' },
    { name: 'Another Name' },
    { providerId: 'hr' },
    { metadata: null },
    { metadata: { crm: { ids: [2, 1] }, note: 'x' } },
    { metadata: { crm: { ids: [1, 2] } } },
    { metadata: null, faults: { metadata: { message: 'broken', reason: 'broken' } } },
  ])('that was read before as something else than %j: not at all', (change) => {
    expect(unchangedMsOf(record(change), before)).toBe(0);
    expect(unchangedMsOf(record({ ...change, accessToken: new Secret('another') }), before)).toBe(0);
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['in another order', { a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 2 }, a: 1 }],
    ['with the zero that JSON does not keep', { a: 0 }, { a: -0 }],
    ['with a member of a strange name', JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":{"a":1}}')],
  ])('whose metadata comes %s: as before', (_, stored, fetched) => {
    const was = readAgo(hour, record({ metadata: stored }));
    expect(unchangedMsOf(record({ metadata: fetched }), was) / hour).toBeCloseTo(3);
  });
});

it('A stored record of release 0.1.0 can be read: a deploy costs no token call', () => {
  const { createdAt, metadata, name, providerId, status, taxpayerId } = record();
  const asWritten = { accessToken: 'a-token', createdAt, metadata, name, providerId, status, taxpayerId };
  expect(tokenAnswerCodec.decode({ kind: 'record', record: asWritten, unchangedForMs: 5 })).toMatchObject({
    record: { name: 'A Name' },
  });
});
