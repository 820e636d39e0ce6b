import { z } from 'zod';
import { type ErrorCode, errorCodes, GatewayError } from '../errors/errors.js';
import type { EntryName, SealedStore } from './SealedStore.js';
import type { Turn } from './stores/Store.js';

/** One answer of the service as it is kept. */
export interface Entry<Value> {
  /** Random: tells two fetches apart even when they brought the same value. */
  readonly version: string;
  readonly value: Value;
  /** Epoch milliseconds. */
  readonly fetchedAt: number;
  /** What its readers derived from it. Never stored. */
  view?: unknown;
}

/** How values pass through the shared store, where only JSON does. */
export interface Codec<Value> {
  encode(value: Value): unknown;
  /** @throws when `stored` is not an encoded value of this version of the gateway; the entry then counts as absent */
  decode(stored: unknown): Value;
}

export interface StoredEntriesOptions<Value> {
  readonly store: SealedStore;
  readonly codec: Codec<Value>;
  /** How long a value is kept, in milliseconds. */
  readonly ttlMs: (value: Value) => number;
}

/** What is in the store; `entry` is undefined when it cannot be read, as of another version of the gateway. */
export interface Stored<Value> {
  readonly entry: Entry<Value> | undefined;
  readonly bytes: Buffer;
}

/** How long the failure of a lease holder can be read by those who waited for it, in milliseconds. */
const failureTtlMs = 10_000;

const storedEntry = z.object({ version: z.string(), fetchedAt: z.number(), value: z.unknown() });

const storedFailure = z.object({
  code: z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]),
  message: z.string(),
  retryAfterSeconds: z.number().optional(),
});

/** What a `LeasedCache` shares with the fleet: its entries, their leases, and the failures of lease holders. */
export class StoredEntries<Value> {
  constructor(private readonly options: StoredEntriesOptions<Value>) {}

  async find(name: EntryName): Promise<Entry<Value> | undefined> {
    const found = await this.options.store.find(name);
    return found && this.#decode(found.value);
  }

  /** The entry, or without one but `refused` the lease for `owner`. */
  async acquire(name: EntryName, owner: string, ttlMs: number, refused?: Buffer): Promise<Turn<Stored<Value>>> {
    const turn = await this.options.store.acquire(name, owner, ttlMs, refused);
    if (turn.state !== 'found') return turn;
    const { bytes, value } = turn.entry;
    return { state: 'found', entry: { bytes, entry: this.#decode(value) } };
  }

  /** Writes the entry and ends the lease, if `owner` holds it; tells whether it did. */
  settle(name: EntryName, { version, value, fetchedAt }: Entry<Value>, owner: string): Promise<boolean> {
    const { store, codec, ttlMs } = this.options;
    return store.settle(name, { version, fetchedAt, value: codec.encode(value) }, ttlMs(value), owner);
  }

  /** Ends the lease, and tells those who wait for `owner` why its work brought nothing. */
  async fail(name: EntryName, owner: string, { code, message, retryAfterSeconds }: GatewayError): Promise<void> {
    await this.options.store.fail(name, { code, message, retryAfterSeconds }, failureTtlMs, owner);
  }

  async failureOf(name: EntryName, owner: Buffer): Promise<GatewayError | undefined> {
    const stored = storedFailure.safeParse(await this.options.store.failureOf(name, owner.toString()));
    if (!stored.success) return undefined;
    const { code, message, retryAfterSeconds } = stored.data;
    return new GatewayError(code, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
  }

  #decode(found: unknown): Entry<Value> | undefined {
    try {
      const { version, fetchedAt, value } = storedEntry.parse(found);
      return { version, fetchedAt, value: this.options.codec.decode(value) };
    } catch {
      return undefined;
    }
  }
}
