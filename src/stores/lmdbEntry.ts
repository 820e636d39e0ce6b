import { presentBootId } from './lmdbFile.js';
import { isLeaseKey } from './Store.js';

/** A value and its remaining time to live in milliseconds; 0 or less when it has expired. */
interface Kept {
  readonly value: Buffer;
  readonly leftMs: number;
}

const entryFormat = 1; // format byte, expiry in epoch milliseconds as a big-endian double, bytes
const entryHeaderBytes = 9;
const leaseFormat = 2; // format byte, boot id, expiry in milliseconds since the machine was started as a double, bytes
const leaseHeaderBytes = 17;

/** Milliseconds since the machine was started: all its processes agree on them, whatever their wall clocks say. */
const steadyMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/**
 * The binary format of entries in an LMDB database. They survive a restart of the machine, so they expire by the wall clock.
 * A lease lasts for seconds and must expire for all processes at once, so it expires by the machine's monotonic clock.
 */
export class LmdbEntryFormat {
  readonly #bootId = presentBootId() ?? 0n;

  constructor(
    /** Epoch milliseconds. */
    private readonly now: () => number,
  ) {}

  encode(key: string, value: Buffer, ttlMs: number): Buffer {
    const isLease = isLeaseKey(key);
    const entry = Buffer.allocUnsafe((isLease ? leaseHeaderBytes : entryHeaderBytes) + value.length);
    entry[0] = isLease ? leaseFormat : entryFormat;
    if (isLease) entry.writeBigUInt64BE(this.#bootId, 1);
    entry.writeDoubleBE((isLease ? steadyMs() : this.now()) + ttlMs, isLease ? 9 : 1);
    value.copy(entry, isLease ? leaseHeaderBytes : entryHeaderBytes);
    return entry;
  }

  /** Undefined for bytes not written by us, and for a lease from before the last start of the machine. */
  decode(bytes: Buffer): Kept | undefined {
    if (bytes[0] === entryFormat && bytes.length >= entryHeaderBytes) {
      return { value: bytes.subarray(entryHeaderBytes), leftMs: bytes.readDoubleBE(1) - this.now() };
    }
    const isLease = bytes[0] === leaseFormat && bytes.length >= leaseHeaderBytes;
    if (!isLease || bytes.readBigUInt64BE(1) !== this.#bootId) return undefined;
    return { value: bytes.subarray(leaseHeaderBytes), leftMs: bytes.readDoubleBE(9) - steadyMs() };
  }
}
