import { describe, expect, it } from '@jest/globals';
import { Secret } from '../../src/config/secret.js';
import { type FreshnessRule, freshMsOf, unchangedSince } from '../../src/datasources/freshness.js';
import type { TokenRecord } from '../../src/datasources/wire.js';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const now = Date.parse('2026-03-01T12:00:00Z');
const rule: FreshnessRule = { share: 0.1, minMs: minute, maxMs: day };

const record = (changes: Partial<TokenRecord> = {}): TokenRecord => ({
  accessToken: new Secret('a-token'),
  taxpayerId: 'a-taxpayer',
  name: 'A Name',
  metadata: { crm: { ids: [1, 2] }, note: 'x' },
  providerId: 'irs',
  createdAt: '2026-01-01T00:00:00Z',
  status: 'AUTHORIZED',
  ...changes,
});

describe('How long a record is fresh', () => {
  it.each<[string, number, number]>([
    ['just changed', 0, minute],
    ['had been unchanged for less than ten minutes', 9 * minute, minute],
    ['had been unchanged for an hour', hour, 6 * minute],
    ['had been unchanged for a day', day, 2.4 * hour],
    ['had been unchanged for ten days', 10 * day, day],
    ['had been unchanged for a year', 365 * day, day],
    ['changed after it was read, by a clock that was put back', -hour, minute],
    ['had been unchanged for 12 minutes and a bit', 12 * minute + 7, 72_001],
  ])('when it %s', (_, unchangedMs, freshMs) => {
    expect(freshMsOf(rule, { record: record(), fetchedAt: now, unchangedSince: now - unchangedMs })).toBe(freshMs);
  });

  it.each<[Partial<FreshnessRule>, number, number]>([
    [{ share: 0 }, 30 * day, minute],
    [{ share: 1 }, 3 * hour, 3 * hour],
    [{ share: 1 }, 3 * day, day],
    [{ share: 1 }, second, minute],
    [{ minMs: hour, maxMs: hour }, 0, hour],
    [{ minMs: hour, maxMs: hour }, 30 * day, hour],
    [{ share: 0, minMs: 15 * minute }, 30 * day, 15 * minute],
  ])('by the rule %j', (changes, unchangedMs, freshMs) => {
    const reading = { record: record(), fetchedAt: now, unchangedSince: now - unchangedMs };
    expect(freshMsOf({ ...rule, ...changes }, reading)).toBe(freshMs);
  });

  it.each(['REJECTED', 'COMPLETED'])('with the final status %s: for the longest time', (status) => {
    const reading = { record: record({ status }), fetchedAt: now, unchangedSince: now };
    expect(freshMsOf(rule, reading)).toBe(day);
    expect(freshMsOf({ ...rule, maxMs: hour }, reading)).toBe(hour);
  });

  it.each<[string, number, string, number]>([
    ['when it was first read', 0, 'AUTHORIZED', 5 * second],
    ['when its part has been broken for 20 s', 20 * second, 'AUTHORIZED', 20 * second],
    ['when its part has been broken for a day', day, 'AUTHORIZED', 2.4 * hour],
    ['with a final status', 0, 'COMPLETED', 5 * second],
  ])('of which a part is broken, %s', (_, brokenMs, status, freshMs) => {
    const faults = { metadata: { message: 'broken', reason: 'broken' } };
    const broken = record({ status, metadata: null, faults });
    expect(freshMsOf(rule, { record: broken, fetchedAt: now, unchangedSince: now - brokenMs })).toBe(freshMs);
    expect(unchangedSince(broken, now)).toBe(now);
  });
});

describe('Since when a record is unchanged', () => {
  const earlier = now - 3 * hour;
  const before = { record: record(), fetchedAt: now - hour, unchangedSince: earlier };

  it.each<[string, string | null, number]>([
    ['when it was created', '2026-02-28T12:00:00Z', now - day],
    ['when it was created, in another zone', '2026-03-01T12:30:00+01:00', now - 30 * minute],
    ['when it was created, as far as a date tells', '2026-02-28', now - 36 * hour],
    ['now, when it has no time of creation', null, now],
    ['now, when it was created in the future', '2026-03-02T12:00:00Z', now],
    ['now, when it was created at no time there is', '2026-02-30T25:61:00Z', now],
  ])('that nobody read before: %s', (_, createdAt, since) => {
    expect(unchangedSince(record({ createdAt }), now)).toBe(since);
  });

  it('that was read before as it is: since then, whatever its token', () => {
    expect(unchangedSince(record(), now, before)).toBe(earlier);
    expect(unchangedSince(record({ accessToken: new Secret('another') }), now, before)).toBe(earlier);
  });

  it.each<Partial<TokenRecord>>([
    { status: 'REJECTED' },
    { name: null },
    { providerId: 'hr' },
    { createdAt: null },
    { metadata: null },
    { metadata: { crm: { ids: [2, 1] }, note: 'x' } },
    { metadata: { crm: { ids: [1, 2] } } },
    { metadata: null, faults: { metadata: { message: 'broken', reason: 'broken' } } },
  ])('that was read before as something else than %j: now', (change) => {
    expect(unchangedSince(record(change), now, before)).toBe(now);
    expect(unchangedSince(record({ ...change, accessToken: new Secret('another') }), now, before)).toBe(now);
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['in another order', { a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 2 }, a: 1 }],
    ['with the zero that JSON does not keep', { a: 0 }, { a: -0 }],
    ['with a member of a strange name', JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":{"a":1}}')],
  ])('whose metadata comes %s: as before', (_, stored, fetched) => {
    const was = { ...before, record: record({ metadata: stored }) };
    expect(unchangedSince(record({ metadata: fetched }), now, was)).toBe(earlier);
  });

  it('is never later than now, however far ahead the clock was that read it before', () => {
    expect(unchangedSince(record(), now, { ...before, fetchedAt: now + day, unchangedSince: now + day })).toBe(now);
    expect(unchangedSince(record(), now, { ...before, fetchedAt: now + day })).toBe(earlier);
  });
});
