import type { Trail } from '../observability/Trail.js';
import type { Runtime } from '../process/Runtime.js';
import type { SealedStore } from './SealedStore.js';
import type { Codec, Entry } from './StoredEntries.js';

/** What a reader asks of a `LeasedCache`. */
export interface ReadRequest<Value, Prepared = undefined> {
  /** Whether an entry will do. */
  readonly acceptable: (entry: Entry<Value>) => boolean;
  /** Whether one will do as well that was fetched since the reader asked. */
  readonly takesFetchedMeanwhile?: boolean;
  /** What the fetch needs. When it takes long the lease is given back and taken again. */
  readonly prepare?: () => Promise<Prepared> | Prepared;
  /** Asks the service. `signal` aborts when the work has to end; `before` is the newest entry known, which would not do. */
  readonly fetch: (prepared: Prepared, signal: AbortSignal, before?: Entry<Value>) => Promise<Value>;
  /** Who reads; a refusal of another holder is not shared with this one. */
  readonly holder?: string | undefined;
  /** Of the reader's operation. */
  readonly trail?: Trail | undefined;
}

export type CacheTier = 'memory' | 'store' | 'fetched' | 'waited';

/** What memory had: an acceptable entry, none, or one that is too old or refused. */
export type ReadReason = 'held' | 'absent' | 'outdated';

export interface LeasedCacheOptions<Value> {
  readonly store: SealedStore;
  readonly codec: Codec<Value>;
  /** How long the store keeps a value, in milliseconds. */
  readonly ttlMs: (value: Value) => number;
  /** First part of every name, and the label of metrics. */
  readonly kind: string;
  readonly maxEntries: number;
  /** Most memory the entries take, in bytes by {@link heldBytes}. Default: a quarter of what the heap may grow to. */
  readonly maxBytes?: number;
  /** Longest the work under the lease may take, in milliseconds. The lease is renewed for as long and a little longer. */
  readonly workMs: number;
  /** Whom an entry is about; by default its id says. */
  readonly subjectOf?: (id: string) => string;
  /** Whether a subject may have been forgotten by the fleet since `beganAt`, in epoch milliseconds. By default none is. */
  readonly mayHaveForgotten?: (subject: string, beganAt: number) => Promise<boolean>;
  /** How far two clocks of the fleet may be apart, in milliseconds. Default 1000. */
  readonly skewMs?: number;
  readonly runtime?: Runtime;
  readonly onRead?: (kind: string, tier: CacheTier, reason: ReadReason) => void;
  readonly onLeaseWait?: (kind: string, seconds: number) => void;
}
