import type { Runtime } from '../process/Runtime.js';
import type { Store } from './Store.js';
import type { WriteJournal } from './WriteJournal.js';

type KeyTest = (key: string) => boolean;

/** How long a delivery goes on with what it knows of who was forgotten, in milliseconds. */
const askAgainMs = 100;

/** Tells the primary what the journal holds, once it answers again: in the background, one delivery at a time. */
export class Delivery {
  /**
   * Finds out from the primary for which keys nothing may be delivered, because those they are about were forgotten meanwhile.
   * Asked again during a long delivery; while it rejects, nothing is delivered.
   */
  forgottenKeys: (primary: Store) => Promise<KeyTest> = async () => () => false;
  #underWay: Promise<void> | undefined;

  constructor(
    private readonly journal: WriteJournal,
    private readonly primary: Store,
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

  /**
   * Delivers what is pending, in a second try when the one under way failed or had begun before the latest writes. Never
   * rejects; what fails twice stays pending.
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
      if (this.runtime.monotonicNow() - askedAt >= askAgainMs) {
        askedAt = this.runtime.monotonicNow();
        isForgotten = await this.forgottenKeys(this.primary);
      }
      return isForgotten(key);
    });
  }
}
