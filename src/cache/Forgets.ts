import { hourMs } from '../stores/Store.js';
import type { Note, SealedStore } from './SealedStore.js';

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
  /** They keep the records, about which `isChanged` notes are. */
  readonly records: readonly MemoryKeeper[];
  readonly jobs: readonly MemoryKeeper[];
  /** Whether memory has the change that a note tells of. */
  readonly hasChange: (note: Note) => boolean;
  /** This process has forgotten a subject that an operator had erased. */
  readonly onForgotten: (note: Note) => void;
}

/**
 * Makes this process forget the subjects that any process erased, or that have changed. The store erases a record before its list
 * names the subject, and from then on takes no value whose fetch began earlier: what this process drops on reading the list cannot
 * come back. A changed record is in the store before the list names its subject.
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
    const { store, records, jobs, hasChange, onForgotten } = this.options;
    const { notes, mark } = await store.notesSince(this.#mark);
    const news = notes.filter((note) => !this.#seen.has(note.id) && !hasChange(note));
    const erased = news.filter(({ isChanged }) => !isChanged);
    forgetThose(records, news);
    forgetThose(jobs, erased);
    for (const each of erased) onForgotten(each);
    // The last look was so long ago that the list may have lost some since.
    if (this.#mark > 0 && mark - this.#mark > knownForMs) this.forgetAll();
    this.#seen = new Set(notes.map(({ id }) => id));
    this.#mark = mark;
  }

  /** Drops everything: also after a change of the client secret, when others may still add to the list of the old name. */
  forgetAll(): void {
    for (const keeper of [...this.options.records, ...this.options.jobs]) keeper.forget(() => true);
  }
}

/** One pass through each memory for all notes. */
function forgetThose(keepers: readonly MemoryKeeper[], notes: readonly Note[]): void {
  if (notes.length === 0) return;
  const subjects = new Set(notes.map(({ subject }) => subject));
  for (const keeper of keepers) keeper.forget((subject) => subjects.has(subject));
}
