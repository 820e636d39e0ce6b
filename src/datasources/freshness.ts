import { hash } from 'node:crypto';
import { stringify as stableStringify } from 'safe-stable-stringify';
import { ageMsOf } from '../cache/Entry.js';
import type { Config } from '../config/config.js';
import type { TokenEntry, TokenReading } from './tokenAnswer.js';
import type { TokenRecord } from './wire.js';

/** Whether the record has a status that the service will not change any more (interface, 3.1). */
export function isFinalRecord({ status }: TokenRecord): boolean {
  return status === 'REJECTED' || status === 'COMPLETED';
}

/** Shortest time for which a record with a faulty part is fresh, in milliseconds: the service may mend it soon. */
const faultyFreshMs = 5000;

/**
 * How long a record is fresh after it was read, in milliseconds: a share (0 to 1) of the time it had been unchanged then (RFC 9111,
 * 4.2.2), within bounds.
 */
export function freshMsOf(rule: Config['freshness'], { record, unchangedForMs }: TokenReading): number {
  if (isFinalRecord(record) && !record.faults) return rule.maxMs;
  const usualMs = Math.min(rule.maxMs, Math.max(rule.minMs, rule.share * unchangedForMs));
  return Math.round(record.faults ? Math.min(usualMs, Math.max(faultyFreshMs, unchangedForMs)) : usualMs);
}

/**
 * For how long a record that is read now has been unchanged: since the first reading with the same content or, if this is the
 * first reading, since its creation.
 */
export function unchangedMsOf(record: TokenRecord, before?: Pick<TokenEntry, 'value' | 'readAt'>): number {
  if (before?.value) {
    const isUnchanged = digestOf(before.value.record) === digestOf(record);
    return isUnchanged ? before.value.unchangedForMs + ageMsOf(before) : 0;
  }
  if (record.faults || record.createdAt === null) return 0; // the service may mend a fault soon
  return Math.max(0, Date.now() - Date.parse(record.createdAt));
}

const digests = new WeakMap<TokenRecord, string>();

/** Tells contents of records apart. The token is left out: a new one is no change of the record. Computed once for each object. */
export function digestOf(record: TokenRecord): string {
  const digest = digests.get(record) ?? hash('sha256', `${stableStringify({ ...record, accessToken: undefined })}`);
  digests.set(record, digest);
  return digest;
}
