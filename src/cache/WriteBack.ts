import { StoreError } from '../stores/StoreError.js';

const everyMs = 1000;
/** Most entries that one cache writes back each second: after an outage a whole fleet does so at once. */
const mostAtOnce = 25;

/** Each second, saves again what the store did not take, until nothing is left. */
export class WriteBack {
  /** The ids of entries, each with the owner of the lease under which it was fetched. */
  readonly #unsaved = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;

  /** `save` calls `later` itself for what it could not write. */
  constructor(private readonly save: (id: string, owner: string) => Promise<void>) {}

  later(id: string, owner: string): void {
    this.#unsaved.set(id, owner);
    this.#workSoon();
  }

  #workSoon(): void {
    this.#timer ??= setTimeout(() => this.#work(), everyMs).unref();
  }

  #work(): void {
    this.#timer = undefined;
    for (const [id, owner] of [...this.#unsaved].slice(0, mostAtOnce)) {
      this.#unsaved.delete(id);
      // Again, where another process held the lease for too long or failed. A StoreError comes only from a closed store.
      this.save(id, owner).catch((error) => {
        if (!(error instanceof StoreError)) this.later(id, owner);
      });
    }
    if (this.#unsaved.size > 0) this.#workSoon();
  }
}
