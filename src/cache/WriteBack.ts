import { BoundedCache } from '../process/BoundedCache.js';
import { StoreError } from '../stores/StoreError.js';

const everyMs = 1000;
/** Most entries that one cache writes back each second: after an outage a whole fleet does so at once. */
const mostAtOnce = 25;

/** Each second, saves again what the store did not take, until nothing is left. */
export class WriteBack {
  /** The ids of entries. */
  readonly #unsaved: BoundedCache<true>;
  #timer: NodeJS.Timeout | undefined;

  /** `save` calls `later` itself for what it could not write. `max`: how many are noted; the oldest is given up for one more. */
  constructor(
    private readonly save: (id: string) => Promise<void>,
    max: number,
  ) {
    this.#unsaved = new BoundedCache({ max });
  }

  later(id: string): void {
    this.#unsaved.set(id, true);
    this.#workSoon();
  }

  #workSoon(): void {
    this.#timer ??= setTimeout(() => this.#work(), everyMs).unref();
  }

  #work(): void {
    this.#timer = undefined;
    for (const id of [...this.#unsaved.rkeys()].slice(0, mostAtOnce)) {
      this.#unsaved.delete(id);
      // Again, where another process held the lease for too long or failed. A StoreError comes only from a closed store.
      this.save(id).catch((error) => {
        if (!(error instanceof StoreError)) this.later(id);
      });
    }
    if (this.#unsaved.size > 0) this.#workSoon();
  }
}
