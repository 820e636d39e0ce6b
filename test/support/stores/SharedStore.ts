import { LocalStore } from '../../../src/stores/LocalStore.js';
import { hourMs, type Outcome, type Place, type Turn, type Wish } from '../../../src/stores/Store.js';

interface Lease {
  readonly owner: string;
  readonly endsAt: number;
  readonly failure?: Buffer;
}

/** What Redis is to a fleet, in the memory of the test: the local store with leases, failures and the list of the forgotten. */
export class SharedStore extends LocalStore {
  readonly #leases = new Map<string, Lease>();
  readonly #failures = new Map<string, Lease>();
  readonly #forgotten = new Map<string, { readonly at: number; readonly list: string; readonly note: Buffer }>();

  override async acquire(place: Place, { owner, leaseMs, refused, awaited }: Wish): Promise<Turn> {
    const key = JSON.stringify(place);
    const now = performance.now();
    const stored = this.find(place, refused);
    if (stored) return { state: 'found', stored };
    const failed = this.#failures.get(key);
    if (failed?.failure && failed.owner === awaited && failed.endsAt > now)
      return { state: 'failed', failure: failed.failure };
    const lease = this.#leases.get(key);
    if (lease && lease.endsAt > now) return { state: 'held', owner: lease.owner };
    this.#leases.set(key, { owner, endsAt: now + leaseMs });
    return { state: 'taken', forgottenMs: now - (this.#forgotten.get(place.record)?.at ?? -Infinity) };
  }

  override async renew(place?: Place, owner = '', leaseMs = 0): Promise<boolean> {
    const key = JSON.stringify(place);
    const now = performance.now();
    const lease = this.#leases.get(key);
    if (lease?.owner !== owner || lease.endsAt <= now) return false;
    this.#leases.set(key, { owner, endsAt: now + leaseMs });
    return true;
  }

  override async settle(place: Place, owner: string, outcome: Outcome): Promise<boolean> {
    const key = JSON.stringify(place);
    if (this.#leases.get(key)?.owner !== owner) return false;
    this.#leases.delete(key);
    if (outcome === undefined) return true;
    if (!('failure' in outcome)) {
      this.#failures.delete(key);
      return super.settle(place, owner, outcome);
    }
    this.#failures.set(key, { owner, endsAt: performance.now() + outcome.ttlMs, failure: outcome.failure });
    return true;
  }

  override async forget(record: string, list = '', note: Buffer = Buffer.of()): Promise<number> {
    const now = performance.now();
    for (const leases of [this.#leases, this.#failures]) {
      for (const key of leases.keys()) if (JSON.parse(key).record === record) leases.delete(key);
    }
    this.#forgotten.delete(record);
    this.#forgotten.set(record, { at: now, list, note });
    return super.forget(record);
  }

  override async forgottenSince(list: string, mark: number) {
    const now = performance.now();
    const listed = [...this.#forgotten.values()].filter(
      (each) => each.list === list && each.at >= mark && now - each.at < hourMs,
    );
    return { notes: listed.map(({ note }) => note), mark: now };
  }
}
