import type { Store } from './Store.js';
import type { WriteJournal } from './WriteJournal.js';

type KeyTest = (key: string) => boolean;

/** How long a delivery uses one answer of {@link Delivery.forgottenKeys}, in milliseconds. */
const askAgainMs = 100;

/** Delivers the journal to the primary once the primary answers again: in the background, one delivery at a time. */
export class Delivery {
  /**
   * Asks the primary which keys must not be delivered, because their subjects were forgotten meanwhile. Called again during a
   * long delivery. While it rejects, nothing is delivered.
   */
  forgottenKeys: (primary: Store) => Promise<KeyTest> = async () => () => false;
  #underWay: Promise<void> | undefined;

  constructor(
    private readonly journal: WriteJournal,
    private readonly primary: Store,
  ) {}

  /** The delivery in progress, if any. Never rejects. */
  get underWay(): Promise<void> | undefined {
    return this.#underWay;
  }

  /** Starts a delivery unless one is in progress. What fails stays pending for the next. */
  begin(): void {
    this.#underWay ??= this.#tellPrimary()
      .catch(() => undefined)
      .finally(() => {
        this.#underWay = undefined;
      });
  }

  /**
   * Delivers everything pending. Tries twice, because a delivery in progress may fail, or have begun before the latest writes.
   * Never rejects; what fails twice stays pending.
   */
  async complete(): Promise<void> {
    for (let tries = 0; tries < 2 && !this.journal.isEmpty; tries++) {
      this.begin();
      await this.#underWay;
    }
  }

  async #tellPrimary(): Promise<void> {
    let isForgotten: KeyTest = () => false;
    let askedAt = Number.NEGATIVE_INFINITY;
    await this.journal.deliver(this.primary, async (key) => {
      if (performance.now() - askedAt >= askAgainMs) {
        askedAt = performance.now();
        isForgotten = await this.forgottenKeys(this.primary);
      }
      return isForgotten(key);
    });
  }
}
