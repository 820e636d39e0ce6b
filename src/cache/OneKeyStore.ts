import * as z from 'zod';
import { failureKeyOf, leaseKeyOf, type Store, type Turn } from '../stores/Store.js';
import type { KeyRing } from './sealing.js';

/** A name in the store as readable parts; only its keyed hash leaves the process. */
export type EntryName = readonly string[] | SubjectName;

/** The name of an entry about `subject`. The keys of all such entries share a prefix, so they can be listed and erased. */
export interface SubjectName {
  readonly subject: string;
  readonly parts: readonly string[];
}

/** Whether a store key is that of a {@link SubjectName}, or derived from it. Only these hold a dot: keyed hashes do not. */
export const isSubjectKey = (key: string): boolean => key.includes('.');

/** `expiresAt` is in epoch milliseconds. `ttlMs` is the time to live as written. */
const content = z.object({ value: z.unknown(), expiresAt: z.number(), ttlMs: z.number() });
export type Content = z.output<typeof content>;

/** What is stored under a name. If it cannot be decrypted or has expired, `value` is undefined and the times are 0. */
export interface Found extends Content {
  readonly bytes: Buffer;
}

export interface OneKeyStoreOptions {
  readonly store: Store;
  /** The settings that change every answer (base URL, client id, API version). They are part of every name. */
  readonly scope: readonly string[];
}

/**
 * JSON values under one encryption key, in a {@link Store} that sees neither names nor values: names are HMACs, values are
 * encrypted and bound to their name. A value that does not decrypt or parse (tampered, foreign, moved) counts as absent.
 */
export class OneKeyStore {
  constructor(
    private readonly ring: KeyRing,
    private readonly options: OneKeyStoreOptions,
  ) {}

  /** The store key of the entry with this name. */
  keyOf(name: EntryName): string {
    const { scope } = this.options;
    if (!('subject' in name)) return this.ring.name([...scope, ...name]);
    return this.beginningOf(name.subject) + this.ring.name(name.parts);
  }

  /** The prefix of the keys of all entries about `subject`. */
  beginningOf(subject: string): string {
    return `${this.ring.name([...this.options.scope, 'subject', subject])}.`;
  }

  find(name: EntryName): Promise<Found | undefined> {
    return this.findKey(this.keyOf(name));
  }

  async findKey(key: string): Promise<Found | undefined> {
    const bytes = await this.options.store.get(key);
    return bytes && this.#open(key, bytes);
  }

  set(name: EntryName, written: Content, ttlMs: number): Promise<void> {
    const key = this.keyOf(name);
    return this.options.store.set(key, this.#seal(key, written), ttlMs);
  }

  /** Writes if nothing is under `name`. Then returns a function that deletes the value, unless it was overwritten. */
  async claim(name: EntryName, written: Content, ttlMs: number): Promise<(() => Promise<unknown>) | undefined> {
    const { store } = this.options;
    const key = this.keyOf(name);
    const bytes = this.#seal(key, written);
    return (await store.claim(key, bytes, ttlMs)) ? () => store.compareAndDelete(key, bytes) : undefined;
  }

  increment(name: EntryName, by: number, ttlMs: number): Promise<number> {
    return this.options.store.increment(this.keyOf(name), by, ttlMs);
  }

  /** As {@link Store.acquire}. */
  async acquire(name: EntryName, owner: string, ttlMs: number, refused?: Buffer): Promise<Turn<Found>> {
    const key = this.keyOf(name);
    const turn = await this.options.store.acquire(key, Buffer.from(owner), ttlMs, refused);
    return turn.state === 'found' ? { state: 'found', entry: this.#open(key, turn.entry) } : turn;
  }

  /** As {@link Store.renew}. */
  renew(name: EntryName, owner: string, ttlMs: number): Promise<boolean> {
    return this.options.store.renew(this.keyOf(name), Buffer.from(owner), ttlMs);
  }

  /** As {@link Store.settle}. */
  settle(name: EntryName, written: Content, ttlMs: number, owner: string): Promise<boolean> {
    const key = this.keyOf(name);
    return this.#settle(key, owner, key, written, ttlMs);
  }

  /** If `owner` holds the lease, releases it and stores why the work failed. */
  fail(name: EntryName, written: Content, ttlMs: number, owner: string): Promise<boolean> {
    const key = this.keyOf(name);
    return this.#settle(key, owner, failureKeyOf(key, owner), written, ttlMs);
  }

  failureOf(name: EntryName, owner: string): Promise<Found | undefined> {
    return this.findKey(failureKeyOf(this.keyOf(name), owner));
  }

  leaseOwner(name: EntryName): Promise<Buffer | undefined> {
    return this.options.store.get(leaseKeyOf(this.keyOf(name)));
  }

  /** Releases the lease if `owner` still holds it. */
  release(name: EntryName, owner: string | Buffer): Promise<boolean> {
    return this.options.store.compareAndDelete(leaseKeyOf(this.keyOf(name)), Buffer.from(owner as string));
  }

  #settle(key: string, owner: string, target: string, written: Content, ttlMs: number): Promise<boolean> {
    const entry = { key: target, value: this.#seal(target, written), ttlMs };
    return this.options.store.settle(key, Buffer.from(owner), entry);
  }

  #seal(key: string, written: Content): Buffer {
    return this.ring.seal(key, Buffer.from(JSON.stringify(written)));
  }

  #open(key: string, bytes: Buffer): Found {
    try {
      const found = content.parse(JSON.parse(String(this.ring.open(key, bytes))));
      // A store whose clock is wrong, or that was rolled back, may still hold an expired entry.
      if (found.expiresAt > Date.now()) return { ...found, bytes };
    } catch {
      // Foreign, tampered with, or under another encryption key.
    }
    return { bytes, value: undefined, expiresAt: 0, ttlMs: 0 };
  }
}
