import { StoreError } from '../stores/StoreError.js';

const everyMs = 1000;
/** Most entries that one cache writes back each second: after an outage a whole fleet does so at once. */
const mostAtOnce = 25;

/** Each second, saves again what the store did not take, until nothing is left. */
export class WriteBack {
  /** The ids of entries, each with the owner of the lease under which it was fetched. */
  readonly #unsaved = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;

  /** `save` calls `later` itself for what it could not write. `most`: how many are noted; the oldest is given up for one more. */
  constructor(
    private readonly save: (id: string, owner: string) => Promise<void>,
    private readonly most: number,
  ) {}

  later(id: string, owner: string): void {
    this.#unsaved.set(id, owner);
    const [oldest = id] = this.#unsaved.keys();
    if (this.#unsaved.size > this.most) this.#unsaved.delete(oldest);
    this.#workSoon();
  }

  #workSoon(): void {
    this.#timer ??= setTimeout(() => this.#work(), everyMs).unref();
  }

  #work(): void {
    this.#timer = undefined;
    let count = 0;
    for (const [id, owner] of this.#unsaved) {
      if (count++ === mostAtOnce) break;
      this.#unsaved.delete(id);
      // Again, where another process held the lease for too long or failed. A StoreError comes only from a closed store.
      this.save(id, owner).catch((error) => {
        if (!(error instanceof StoreError)) this.later(id, owner);
      });
    }
    if (this.#unsaved.size > 0) this.#workSoon();
  }
}
