import { z } from 'zod';
import { type ErrorCode, errorCodes, GatewayError } from '../errors/errors.js';
import type { EntryName, SealedStore } from './SealedStore.js';

/** One answer of the service as it is kept. */
export interface Entry<Value> {
  /** Random: tells two fetches apart even when they brought the same value. */
  readonly version: string;
  readonly value: Value;
  /** Epoch milliseconds. */
  readonly fetchedAt: number;
  /** What its readers made of it and need not make again. Never stored. */
  view?: unknown;
}

/** How values pass through the shared store, where only JSON does. */
export interface Codec<Value> {
  encode(value: Value): unknown;
  /** @throws when `stored` is not an encoded value of this version of the gateway; the entry then counts as absent */
  decode(stored: unknown): Value;
}

export interface StoredEntriesOptions<Value> {
  /** First part of every name. */
  readonly kind: string;
  readonly store: SealedStore;
  readonly codec: Codec<Value>;
  /** How long a value is kept, in milliseconds. */
  readonly ttlMs: (value: Value) => number;
}

/** How long the failure of a lease holder can be read by those who were waiting for it, in milliseconds. */
const failureTtlMs = 10_000;

const storedEntry = z.object({ version: z.string(), fetchedAt: z.number(), value: z.unknown() });

const storedFailure = z.object({
  code: z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]),
  message: z.string(),
  retryAfterSeconds: z.number().optional(),
});

/**
 * What a `LeasedCache` shares with the fleet: its entries, and how the work of a lease holder failed. What does not fit,
 * because another version of the gateway wrote it, is absent.
 */
export class StoredEntries<Value> {
  readonly #options: StoredEntriesOptions<Value>;

  constructor(options: StoredEntriesOptions<Value>) {
    this.#options = options;
  }

  /** The name of the entry of `id`, and of its lease. */
  nameOf(id: string): EntryName {
    return [this.#options.kind, id];
  }

  async read(id: string): Promise<Entry<Value> | undefined> {
    const stored = storedEntry.safeParse(await this.#options.store.get(this.nameOf(id)));
    if (!stored.success) return undefined;
    const { version, fetchedAt, value } = stored.data;
    try {
      return { version, fetchedAt, value: this.#options.codec.decode(value) };
    } catch {
      return undefined;
    }
  }

  /** Writes only while `owner` holds the lease of `id`; tells whether it did. */
  write(id: string, { version, value, fetchedAt }: Entry<Value>, owner: string): Promise<boolean> {
    const { store, codec, ttlMs } = this.#options;
    return store.setIfHolding(this.nameOf(id), { version, fetchedAt, value: codec.encode(value) }, ttlMs(value), owner);
  }

  /** Tells those who wait for the lease of `owner` why its work brought nothing. */
  async shareFailure(owner: string, { code, message, retryAfterSeconds }: GatewayError): Promise<void> {
    const failure: z.input<typeof storedFailure> = { code, message, retryAfterSeconds };
    await this.#options.store.set(this.#failureName(owner), failure, failureTtlMs);
  }

  async failureOf(owner: string): Promise<GatewayError | undefined> {
    const stored = storedFailure.safeParse(await this.#options.store.get(this.#failureName(owner)));
    if (!stored.success) return undefined;
    const { code, message, retryAfterSeconds } = stored.data;
    return new GatewayError(code, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
  }

  #failureName(owner: string): EntryName {
    return [this.#options.kind, 'outcome', owner];
  }
}
