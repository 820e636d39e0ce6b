import { hourMs } from '../stores/Store.js';
import type { Forgotten, SealedStore } from './SealedStore.js';

/** The store keeps a note for an hour. A process relies on half of that, in milliseconds. */
export const knownForMs = hourMs / 2;
/** How often each process looks at the list, in milliseconds. */
const lookEveryMs = 2000;

/** A component that keeps data about subjects in memory. */
export interface MemoryKeeper {
  /** Drops what it holds about the subjects that `isMeant` selects, and keeps no result of a read about them in flight. */
  forget(isMeant: (subject: string) => boolean): void;
}

interface ForgetsOptions {
  readonly store: SealedStore;
  readonly keepers: readonly MemoryKeeper[];
  /** This process has forgotten a subject. */
  readonly onForgotten: (forgotten: Forgotten) => void;
}

/**
 * Makes this process forget the subjects that any process erased. The store erases a record before its list names the subject,
 * and from then on takes no value whose fetch began earlier: what this process drops on reading the list cannot come back.
 */
export class Forgets {
  /** The ids that the last look found: the store may return them again. */
  #seen: ReadonlySet<string> = new Set();
  #mark = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: ForgetsOptions) {}

  /** Looks now, and every two seconds from then on. */
  async start(): Promise<void> {
    const look = () => this.look().catch(() => undefined);
    this.#timer = setInterval(look, lookEveryMs).unref();
    await look();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** @throws StoreError when the list cannot be read */
  async look(): Promise<void> {
    const { store, onForgotten } = this.options;
    const { notes, mark } = await store.notesSince(this.#mark);
    const news = notes.filter(({ id }) => !this.#seen.has(id));
    const subjects = new Set(news.map(({ subject }) => subject));
    if (subjects.size > 0) this.#forget((subject) => subjects.has(subject)); // one pass through memory for all of them
    for (const each of news) onForgotten(each);
    // The last look was so long ago that the list may have lost some since.
    if (this.#mark > 0 && mark - this.#mark > knownForMs) this.forgetAll();
    this.#seen = new Set(notes.map(({ id }) => id));
    this.#mark = mark;
  }

  /** Drops everything: also after a change of the client secret, when others may still add to the list of the old name. */
  forgetAll(): void {
    this.#forget(() => true);
  }

  #forget(isMeant: (subject: string) => boolean): void {
    for (const keeper of this.options.keepers) keeper.forget(isMeant);
  }
}
