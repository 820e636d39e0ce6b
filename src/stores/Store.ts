/** One field of the record about one subject. */
export interface Place {
  readonly record: string;
  readonly field: string;
}

/** What a reader asks for; `refused` is the version that it must not get. */
export interface Wish {
  /** Random and not secret, without white space. */
  readonly owner: string;
  readonly leaseMs: number;
  readonly refused?: string | undefined;
  /** The owner this reader has waited for, whose failure it shares. */
  readonly awaited?: string | undefined;
}

/** A value in a field. `ageMs` is by the store's clock, and negative after that clock was set back. */
export interface Stored<Value = Buffer> {
  /** Random, without white space: tells two writes apart. */
  readonly version: string;
  readonly value: Value;
  readonly ageMs: number;
}

/** What {@link Store.acquire} found or took. `now` is the store's time, for `begunAt` of the {@link Outcome}. */
export type Acquired<Value = Buffer, Failure = Buffer> =
  | { readonly state: 'found'; readonly stored: Stored<Value> }
  | { readonly state: 'failed'; readonly failure: Failure }
  | { readonly state: 'held'; readonly owner: string }
  | { readonly state: 'taken'; readonly now: number };

/**
 * How the work under a lease ended. `begunAt` is when it began by the store's clock, or earlier, never later. `failure` is
 * undefined when no other process may share it.
 */
export type Outcome<Value = Buffer, Failure = Buffer> =
  | (Stored<Value> & { readonly begunAt: number; readonly ttlMs: number })
  | { readonly failure: Failure | undefined };

/** A field as `inspect` shows it. */
export interface Field {
  readonly name: string;
  readonly ageMs: number;
  readonly leftMs: number;
}

export interface Item<Value = Buffer> {
  readonly value: Value;
  readonly leftMs: number;
}

/** `if-longer`: unless what is there lasts at least as long; more than an hour counts as over, as the clock was set back. */
export type PutWhen = 'always' | 'if-absent' | 'if-longer';

export const hourMs = 3_600_000;

/**
 * What the processes of a fleet share: records about subjects, and plain items. Each operation is atomic. Values
 * are encrypted and names are keyed hashes (see `Sealer.ts`). The store tells ages and times left by its own clock, in
 * milliseconds, so that no two machines' clocks are ever compared. A time with more left than its full length counts as over: the
 * clock was set back.
 *
 * Operations of one instance on one record or key take effect in the order in which they were called, also after one was given up;
 * only one that was given up with its connection may take effect later, within two minutes.
 * What needs no write works while the store refuses writes. All that is written ends by itself: a lease not before 10 s have passed,
 * what `forget` leaves after an hour, a value at its time to live. A record without the field `token` may end after an hour, and one
 * with more than a hundred fields may lose others than `token`.
 *
 * Every method rejects with a `StoreError`, and no other error, when the store refuses or does not answer within about a second; the
 * work may be done all the same. Opening one rejects only with a `ConfigError`, also while the server is down. `close` waits for no
 * server. `test/support/stores/storeContract.ts` tests most of this for every store.
 */
export interface Store {
  /**
   * Gives the value at `place`, if there is one that is not refused. Otherwise gives the failure of the owner that was waited
   * for, if it has failed. Otherwise takes the lease, or renews it if this owner has it. Names the owner if another one has
   * it.
   */
  acquire(place: Place, wish: Wish): Promise<Acquired>;

  /**
   * Writes the outcome and ends the lease; false when the owner does not have it, because another took it or the record was
   * forgotten. A value whose work began before the record was forgotten is not kept. A failure is kept until the next lease.
   */
  settle(place: Place, owner: string, outcome: Outcome): Promise<boolean>;

  /** Erases the record with its leases. Returns how many fields there were, leases and failures included. */
  forget(record: string): Promise<number>;

  /** Puts `note` on `list` for an hour. */
  note(list: string, note: Buffer): Promise<void>;

  /** The notes put on `list` since `mark`, perhaps with some older ones, and the next mark. */
  notesSince(list: string, mark: number): Promise<{ readonly notes: readonly Buffer[]; readonly mark: number }>;

  /** The fields of the record that have a value. */
  fields(record: string): Promise<readonly Field[]>;

  get(key: string): Promise<Item | undefined>;

  /** Tells whether it wrote. */
  put(key: string, value: Buffer, ttlMs: number, when: PutWhen): Promise<boolean>;

  /** Deletes the item if it is exactly `expected`; tells whether it did. */
  deleteIf(key: string, expected: Buffer): Promise<boolean>;

  /** Adds one to a counter. A new one lives for `ttlMs` from its first count. */
  increment(key: string, ttlMs: number): Promise<{ readonly count: number; readonly leftMs: number }>;

  /** How the store chooses what to delete when its memory is full, if it has such a choice: `noeviction` deletes nothing. */
  evictionPolicy?(): Promise<string | undefined>;

  /** Ends connections, timers and files. From the call on, other operations are refused. Idempotent. */
  close(): Promise<void>;
}
