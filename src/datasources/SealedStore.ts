import type { Sealer } from './sealing.js';
import type { Store } from './stores/Store.js';

/** A name in the store as readable parts; only its keyed hash leaves the process. */
export type EntryName = readonly string[];

interface Envelope {
  readonly value: unknown;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

export interface SealedStoreOptions {
  readonly store: Store;
  readonly sealer: Sealer;
  /** What changes every answer (base URL, client id, API version): part of every name. */
  readonly scope: readonly string[];
  readonly now?: () => number;
}

/**
 * JSON values in a {@link Store} that sees neither names nor values: names are HMACs, values are encrypted and bound to
 * their name. What does not decrypt or parse (tampered, foreign, moved to another name) is absent.
 */
export class SealedStore {
  readonly #store: Store;
  readonly #sealer: Sealer;
  readonly #scope: readonly string[];
  readonly #now: () => number;

  constructor(options: SealedStoreOptions) {
    this.#store = options.store;
    this.#sealer = options.sealer;
    this.#scope = options.scope;
    this.#now = options.now ?? Date.now;
  }

  /** The value under `name`, also when it was sealed before a key rotation; such a one is sealed anew. */
  async get(name: EntryName): Promise<unknown> {
    const [current, ...previous] = this.#sealer.keys(this.#parts(name)) as [string, ...string[]];
    const held = this.#open(current, await this.#store.get(current));
    if (held !== undefined) return held.value;
    for (const key of previous) {
      const older = this.#open(key, await this.#store.get(key));
      if (older === undefined) continue;
      await this.set(name, older.value, older.expiresAt - this.#now());
      return older.value;
    }
    return undefined;
  }

  async set(name: EntryName, value: unknown, ttlMs: number): Promise<void> {
    const key = this.#key(name);
    await this.#store.set(key, this.#seal(key, value, ttlMs), ttlMs);
  }

  /** Writes only when there is nothing under `name`; tells whether it wrote. Atomic over the fleet. */
  async setIfAbsent(name: EntryName, value: unknown, ttlMs: number): Promise<boolean> {
    const key = this.#key(name);
    return this.#store.setIfAbsent(key, this.#seal(key, value, ttlMs), ttlMs);
  }

  /** Deletes the value under `name`; one written meanwhile survives. */
  async delete(name: EntryName): Promise<void> {
    const key = this.#key(name);
    const bytes = await this.#store.get(key);
    if (bytes !== undefined) await this.#store.compareAndDelete(key, bytes);
  }

  increment(
    name: EntryName,
    by: number,
    ttlMs: number,
  ): Promise<{ readonly count: number; readonly resetsInMs: number }> {
    return this.#store.increment(this.#key(name), by, ttlMs);
  }

  /** Takes the lease `name` for `owner` (random, not secret) until released or `ttlMs` are over. */
  lease(name: EntryName, owner: string, ttlMs: number): Promise<boolean> {
    return this.#store.setIfAbsent(this.#key(name), Buffer.from(owner), ttlMs);
  }

  async leaseOwner(name: EntryName): Promise<string | undefined> {
    return (await this.#store.get(this.#key(name)))?.toString();
  }

  /** Ends the lease when `owner` still holds it, which wakes {@link waitForRelease}. */
  async release(name: EntryName, owner: string): Promise<void> {
    await this.#store.compareAndDelete(this.#key(name), Buffer.from(owner));
  }

  /** Resolves when the lease may have been released, at the latest after `timeoutMs`. */
  waitForRelease(name: EntryName, timeoutMs: number): Promise<void> {
    return this.#store.waitForDelete(this.#key(name), timeoutMs);
  }

  #parts(name: EntryName): readonly string[] {
    return [...this.#scope, ...name];
  }

  #key(name: EntryName): string {
    return this.#sealer.key(this.#parts(name));
  }

  #seal(key: string, value: unknown, ttlMs: number): Buffer {
    const envelope: Envelope = { value, expiresAt: this.#now() + ttlMs };
    return this.#sealer.seal(key, Buffer.from(JSON.stringify(envelope)));
  }

  #open(key: string, bytes: Buffer | undefined): Envelope | undefined {
    const plain = bytes && this.#sealer.open(key, bytes);
    if (plain === undefined) return undefined;
    try {
      const envelope = JSON.parse(plain.toString()) as Envelope;
      // A store that lost track of time, or was rolled back, must not bring the dead back.
      return envelope.expiresAt > this.#now() ? envelope : undefined;
    } catch {
      return undefined;
    }
  }
}
