import { hourMs } from '../stores/Store.js';
import type { Forgotten, SealedStore } from './SealedStore.js';

/** How often each process looks at the list, in milliseconds. */
const lookEveryMs = 2000;

/** A component that keeps data about subjects in memory. */
export interface MemoryKeeper {
  /** Drops what it holds about the subjects that are meant, and keeps no result of the reads in flight about them. */
  forget(isMeant: (subject: string) => boolean): void;
}

export interface ForgetsOptions {
  readonly store: SealedStore;
  readonly keepers: readonly MemoryKeeper[];
  /** This process has forgotten a subject. */
  readonly onForgotten: (forgotten: Forgotten) => void;
}

/**
 * Makes this process forget what another process erased. The erasing ends every lease before the list names the subject, so
 * nothing that was read before it can be written after it; what this process has in memory goes when it reads the list.
 */
export class Forgets {
  /** What the last look saw: the store may tell it once more. */
  #seen: ReadonlySet<string> = new Set();
  #mark = 0;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: ForgetsOptions) {}

  /** Looks now, and every two seconds from then on. */
  async start(): Promise<void> {
    await this.look().catch(() => undefined);
    if (!this.#stopped) this.#timer = setTimeout(() => void this.start(), lookEveryMs).unref();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** @throws StoreError when the list cannot be read */
  async look(): Promise<void> {
    const { store, onForgotten } = this.options;
    const { forgotten, mark } = await store.forgottenSince(this.#mark);
    const listed = forgotten.filter((each) => each !== undefined);
    const news = listed.filter(({ id }) => !this.#seen.has(id));
    const subjects = new Set(news.map(({ subject }) => subject));
    if (subjects.size > 0) this.#forget((subject) => subjects.has(subject)); // one pass through memory for all of them
    for (const each of news) onForgotten(each);
    // A note is kept for an hour: a process that did not look for so long may have missed one.
    if (this.#mark > 0 && mark - this.#mark > hourMs / 2) this.forgetAll();
    this.#seen = new Set(listed.map(({ id }) => id));
    this.#mark = mark;
  }

  /** Also when the client secret gives every name in the store another form: what is forgotten then, this process cannot learn. */
  forgetAll(): void {
    this.#forget(() => true);
  }

  #forget(isMeant: (subject: string) => boolean): void {
    for (const keeper of this.options.keepers) keeper.forget(isMeant);
  }
}
