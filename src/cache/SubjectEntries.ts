import { baseKeyOf, leaseKeyOf, type Store } from '../stores/Store.js';
import type { EntryName, Found } from './OneKeyStore.js';
import type { SealedStore } from './SealedStore.js';

/** An item in the store about a subject. One that cannot be decrypted, such as a lease, has no value. */
export interface SubjectEntry {
  readonly key: string;
  readonly part: 'entry' | 'lease' | 'failure';
  readonly found: Found;
}

/**
 * Everything the store holds about one subject under the encryption keys known here: the entries with known names, and all
 * others with a {@link SubjectName}, found by the prefix of their store keys.
 */
export class SubjectEntries {
  constructor(
    private readonly store: Store,
    private readonly sealed: SealedStore,
    private readonly namesOf: (subject: string) => readonly EntryName[],
  ) {}

  keysOf(name: EntryName): readonly string[] {
    return this.sealed.stores.map((store) => store.keyOf(name));
  }

  /** Returns a test: is a store key (of an entry, a lease or a failure) about one of `subjects`? */
  keysAbout(subjects: readonly string[]): (key: string) => boolean {
    const known = new Set(subjects.flatMap(this.namesOf).flatMap((name) => this.keysOf(name)));
    const beginnings = new Set(
      subjects.flatMap((subject) => this.sealed.stores.map((one) => one.beginningOf(subject))),
    );
    return (key) => known.has(baseKeyOf(key)) || beginnings.has(key.slice(0, key.indexOf('.') + 1));
  }

  /** @throws StoreError */
  async list(subject: string): Promise<readonly SubjectEntry[]> {
    const entries: SubjectEntry[] = [];
    for (const one of this.sealed.stores) {
      const known = this.namesOf(subject).flatMap((name) => [one.keyOf(name), leaseKeyOf(one.keyOf(name))]);
      for (const key of [...known, ...(await this.store.list(one.beginningOf(subject)))]) {
        const found = await one.findKey(key);
        if (found) entries.push({ key, part: partOf(key), found });
      }
    }
    return entries;
  }

  /**
   * Erases everything about `subject`; returns how many items it deleted. A lease is deleted before the entry it covers, so
   * that its holder can no longer write. Known names are erased first and only once, so that entries read anew meanwhile
   * stay; under the oldest key first, because a reader may be copying from there. Everything else is searched for twice: the
   * first search may miss an entry that is written meanwhile.
   *
   * @throws StoreError
   */
  async erase(subject: string): Promise<number> {
    let erased = 0;
    const eraseCovered = async (key: string) => {
      if (await this.#delete(leaseKeyOf(key))) erased += 1;
      if (await this.#delete(key)) erased += 1;
    };
    for (const key of this.namesOf(subject).flatMap((name) => this.keysOf(name).toReversed())) await eraseCovered(key);
    for (let search = 0; search < 2; search++) {
      for (const one of this.sealed.stores) {
        const found = await this.store.list(one.beginningOf(subject));
        for (const base of new Set(found.map(baseKeyOf))) await eraseCovered(base);
        for (const key of found) if (partOf(key) === 'failure' && (await this.#delete(key))) erased += 1;
      }
    }
    return erased;
  }

  /** Deletes `key`, with anything written over it meanwhile; tells whether there was anything. */
  async #delete(key: string): Promise<boolean> {
    const { store } = this;
    for (let tries = 0; ; tries++) {
      const bytes = tries < maxTries ? await store.get(key) : undefined;
      if (!bytes) return tries > 0;
      await store.compareAndDelete(key, bytes);
    }
  }
}

const maxTries = 100;

function partOf(key: string): SubjectEntry['part'] {
  const derived = key.slice(baseKeyOf(key).length);
  return derived === '' ? 'entry' : derived === ':lease' ? 'lease' : 'failure';
}
