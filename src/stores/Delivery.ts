import type { Runtime } from '../process/Runtime.js';
import type { Store } from './Store.js';
import { StoreError } from './StoreError.js';
import type { WriteJournal } from './WriteJournal.js';

export type KeyTest = (key: string) => boolean;

/** How long a delivery goes on with what it knows of who was forgotten, in milliseconds. */
const askAgainMs = 100;

/** Tells the primary what the journal holds, once it answers again: in the background, one delivery at a time. */
export class Delivery {
  /**
   * Tells of which keys nothing may be delivered, because those they are about were forgotten meanwhile. Asked again during a
   * long delivery; while it cannot be told, nothing is delivered.
   */
  forgottenKeys: (() => Promise<KeyTest>) | undefined;
  #underWay: Promise<void> | undefined;

  /** @param missed how many operations the primary has left without an answer so far */
  constructor(
    private readonly journal: WriteJournal,
    private readonly primary: Store,
    private readonly missed: () => number,
    private readonly runtime: Runtime,
  ) {}

  /** The one under way, which never rejects. */
  get underWay(): Promise<void> | undefined {
    return this.#underWay;
  }

  /** What fails stays pending for the next. */
  begin(): void {
    this.#underWay ??= this.#tellPrimary()
      .catch(() => undefined)
      .finally(() => {
        this.#underWay = undefined;
      });
  }

  async #tellPrimary(): Promise<void> {
    let isForgotten: KeyTest = () => false;
    let askedAt = Number.NEGATIVE_INFINITY;
    await this.journal.deliver(this.primary, async (key) => {
      if (this.runtime.monotonicNow() - askedAt >= askAgainMs) {
        askedAt = this.runtime.monotonicNow();
        isForgotten = await this.#askWhoIsForgotten();
      }
      return isForgotten(key);
    });
  }

  async #askWhoIsForgotten(): Promise<KeyTest> {
    const missed = this.missed();
    const isForgotten = await this.forgottenKeys?.();
    // It is read through the store that waits for us, which takes a lost answer for an empty list.
    if (this.missed() !== missed) throw new StoreError('unreachable');
    return isForgotten ?? (() => false);
  }
}
