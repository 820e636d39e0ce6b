import { isDeepStrictEqual } from 'node:util';
import type { TokenRecord } from './wire.js';

/** How long a record is fresh: a share of the time it had been unchanged when it was read (RFC 9111, 4.2.2), within bounds. */
export interface FreshnessRule {
  /** 0 to 1. With 0 every record that can still change is fresh for `minMs`. */
  readonly share: number;
  readonly minMs: number;
  readonly maxMs: number;
}

/** A record as it was read. Times are in epoch milliseconds. */
export interface Reading {
  readonly record: TokenRecord;
  readonly fetchedAt: number;
  readonly unchangedSince: number;
}

const finalStatuses = ['REJECTED', 'COMPLETED'];

/** Whether the record has a status that the service will not change any more (interface, 3.1). */
export function isFinal({ status }: TokenRecord): boolean {
  return finalStatuses.includes(status);
}

/** How long a record is fresh at least of which a part could not be read: the service may mend it soon. */
const brokenFreshMs = 5000;

/** How long what was read is fresh, from `fetchedAt`, in milliseconds. */
export function freshMsOf(rule: FreshnessRule, { record, fetchedAt, unchangedSince }: Reading): number {
  const unchangedMs = fetchedAt - unchangedSince;
  const usualMs = isFinal(record) ? rule.maxMs : Math.min(rule.maxMs, Math.max(rule.minMs, rule.share * unchangedMs));
  // Where the broken part stays, the time doubles up to the usual one.
  const brokenMs = record.faults && Math.max(brokenFreshMs, unchangedMs);
  return Math.round(Math.min(usualMs, brokenMs ?? usualMs));
}

/**
 * Since when a record that was read `now` has been unchanged: since the first reading with the same content, or since its
 * creation if this is the first reading. Never later than `now`: an earlier reading may come from a clock that was ahead.
 */
export function unchangedSince(record: TokenRecord, now: number, before?: Reading): number {
  if (before === undefined) return record.faults ? now : Math.min(now, timeOf(record.createdAt) ?? now);
  return isSame(before.record, record) ? Math.min(now, before.unchangedSince) : now;
}

function timeOf(date: string | null): number | undefined {
  const time = date === null ? Number.NaN : Date.parse(date);
  return Number.isNaN(time) ? undefined : time;
}

/** Whether two records are equal but for the token, which may change at any time. A stored one was JSON, which has no -0. */
export function isSame(one: TokenRecord, other: TokenRecord): boolean {
  const [a, b] = [one, other].map((record) => JSON.parse(JSON.stringify({ ...record, accessToken: undefined })));
  return isDeepStrictEqual(a, b);
}

/** A number from 0 to 1 that differs widely between moments close together, and is the same in every process. */
export const jitterOf = (epochMs: number): number => (epochMs * 0.618_033_988_75) % 1;
