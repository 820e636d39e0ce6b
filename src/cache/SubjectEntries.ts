import { baseKeyOf, leaseKeyOf } from '../stores/Store.js';
import { beginningOf, type EntryName, type Found, openFound, type SealedStoreOptions, slotsOf } from './SealedStore.js';

/** Something in the store about a subject. What does not open, such as a lease, has no value. */
export interface SubjectEntry {
  readonly key: string;
  readonly part: 'entry' | 'lease' | 'failure';
  readonly found: Found;
}

/**
 * Everything the store holds about one subject under the keys known here: under the names that are known, and whatever else
 * has a {@link SubjectName}, found by the beginning of its keys.
 */
export class SubjectEntries {
  constructor(
    private readonly options: SealedStoreOptions,
    private readonly namesOf: (subject: string) => readonly EntryName[],
  ) {}

  keysOf(name: EntryName): readonly string[] {
    return slotsOf(this.options, name).map(({ key }) => key);
  }

  /** @throws StoreError */
  async list(subject: string): Promise<readonly SubjectEntry[]> {
    const { store, sealer, scope, now = Date.now } = this.options;
    const entries: SubjectEntry[] = [];
    for (const [at, ring] of sealer.rings.entries()) {
      const known = this.namesOf(subject).flatMap((name) => {
        const key = this.keysOf(name)[at] as string;
        return [key, leaseKeyOf(key)];
      });
      for (const key of [...known, ...(await store.list(beginningOf(ring, scope, subject)))]) {
        const bytes = await store.get(key);
        if (bytes) entries.push({ key, part: partOf(key), found: openFound({ ring, key }, bytes, now()) });
      }
    }
    return entries;
  }

  /**
   * Erases it; returns how many entries there were. A lease goes before what it covers: whoever held it cannot write any
   * more. Known names are erased once and first, so that what is read anew meanwhile stays. Everything else is looked for
   * twice: an entry that is written during the first search may be missed by it, not by the second.
   *
   * @throws StoreError
   */
  async erase(subject: string): Promise<number> {
    const { store, sealer, scope } = this.options;
    let erased = 0;
    const eraseCovered = async (key: string) => {
      if (await this.#delete(leaseKeyOf(key))) erased += 1;
      if (await this.#delete(key)) erased += 1;
    };
    for (const key of this.namesOf(subject).flatMap((name) => this.keysOf(name))) await eraseCovered(key);
    for (let search = 0; search < 2; search++) {
      for (const ring of sealer.rings) {
        const found = await store.list(beginningOf(ring, scope, subject));
        for (const base of new Set(found.map(baseKeyOf))) await eraseCovered(base);
        for (const key of found) if (partOf(key) === 'failure' && (await this.#delete(key))) erased += 1;
      }
    }
    return erased;
  }

  /** Also what is written over it meanwhile. Wakes those who wait for it. */
  async #delete(key: string): Promise<boolean> {
    const { store } = this.options;
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
