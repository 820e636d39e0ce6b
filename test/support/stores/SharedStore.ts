import { LocalStore } from '../../../src/stores/LocalStore.js';
import { type Acquired, hourMs, type Outcome, type Place, type Wish } from '../../../src/stores/Store.js';

interface Lease {
  readonly owner: string;
  readonly endsAt: number;
  readonly failure?: Buffer;
}

/** What Redis is to a fleet, in the memory of the test: the local store with leases, failures and lists. */
export class SharedStore extends LocalStore {
  readonly #leases = new Map<string, Lease>();
  /** When a record was forgotten. */
  readonly #forgotten = new Map<string, number>();
  readonly #notes: { readonly at: number; readonly list: string; readonly note: Buffer }[] = [];

  override async acquire(place: Place, { owner, leaseMs, refused, awaited }: Wish): Promise<Acquired> {
    const key = JSON.stringify(place);
    const now = performance.now();
    const stored = this.find(place, refused);
    if (stored) return { state: 'found', stored };
    const lease = this.#leases.get(key);
    if (lease?.failure && lease.owner === awaited) return { state: 'failed', failure: lease.failure };
    if (lease && lease.owner !== owner && lease.endsAt > now) return { state: 'held', owner: lease.owner };
    this.#leases.set(key, { owner, endsAt: now + leaseMs });
    return { state: 'taken', now };
  }

  override async settle(place: Place, owner: string, outcome: Outcome): Promise<boolean> {
    const key = JSON.stringify(place);
    if (this.#leases.get(key)?.owner !== owner) return false;
    this.#leases.delete(key);
    if ('failure' in outcome) {
      if (outcome.failure) this.#leases.set(key, { owner, endsAt: 0, failure: outcome.failure });
      return true;
    }
    const forgotten = this.#forgotten.get(place.record);
    const isFromBefore = forgotten !== undefined && outcome.begunAt <= forgotten;
    return isFromBefore || super.settle(place, owner, outcome);
  }

  override async forget(record: string): Promise<number> {
    for (const key of this.#leases.keys()) if (JSON.parse(key).record === record) this.#leases.delete(key);
    this.#forgotten.set(record, performance.now());
    return super.forget(record);
  }

  override async note(list: string, note: Buffer): Promise<void> {
    this.#notes.push({ at: performance.now(), list, note });
  }

  override async notesSince(list: string, mark: number) {
    const now = performance.now();
    const listed = this.#notes.filter((each) => each.list === list && each.at >= mark && now - each.at < hourMs);
    return { notes: listed.map(({ note }) => note), mark: now };
  }
}
