import * as z from 'zod';
import { pause } from '../process/pause.js';
import { leaseMs } from './keepLease.js';
import { isSubjectKey } from './OneKeyStore.js';
import { heldPauseMs, type SealedStore } from './SealedStore.js';
import type { SubjectEntries } from './SubjectEntries.js';

const record = z.object({
  id: z.string(),
  /** `begun`: the erasing has started. `done`: the store holds nothing about the subject any more. */
  state: z.enum(['begun', 'done']),
  /** Undefined means every subject: such a record replaces a list that grew too long. */
  subject: z.string().optional(),
  /** Epoch milliseconds. */
  at: z.number(),
});
export type ForgetRecord = z.output<typeof record>;
const listed = z.object({ records: z.array(record) });

/** The name of the list in the store. The list is encrypted, as everything there. */
const listName = ['forgets'];
/** How long a record is kept, in milliseconds. A process that did not look for half as long may have missed one. */
export const recordMs = 3_600_000;
const maxRecords = 1000;
/** How often each process looks at the list, in milliseconds. */
const lookEveryMs = 2000;

/** Puts `next` on the list; it replaces the record with the same id. @throws StoreError */
export async function writeForget(store: SealedStore, next: ForgetRecord): Promise<void> {
  let before: Buffer | undefined;
  for (;;) {
    const owner = crypto.randomUUID();
    const turn = await store.acquire(listName, owner, leaseMs, before);
    if (turn.state === 'held') await pause(heldPauseMs);
    else if (turn.state === 'found') before = turn.entry.bytes;
    else {
      const records = await recordsOf(store);
      const recent = records.filter(({ id, at }) => id !== next.id && Math.abs(next.at - at) < recordMs);
      const kept = recent.length < maxRecords ? recent : [{ ...next, id: crypto.randomUUID(), subject: undefined }];
      if (await store.settle(listName, { records: [...kept, next] }, recordMs, owner)) return;
    }
  }
}

async function recordsOf(store: SealedStore): Promise<readonly ForgetRecord[]> {
  const lists = await store.lookUnderAllKeys(listName);
  const records = lists.flatMap((list) => listed.safeParse(list).data?.records ?? []);
  return [...new Map(records.map((each) => [markOf(each), each])).values()];
}

/** A component that keeps data about subjects in memory. */
export interface MemoryKeeper {
  /** Drops what it holds about `subject` (undefined: every subject), and keeps no result of the reads in flight about it. */
  forget(subject: string | undefined): void;
}

export interface ForgetsOptions {
  readonly store: SealedStore;
  readonly entries: SubjectEntries;
  readonly keepers: readonly MemoryKeeper[];
  /** Whether the store failed to answer since this was last called: old values may then be written late. */
  readonly takeUnsettled: () => boolean;
  /** Whether keys are being rotated: entries may then lie under a key that the erasing process does not know. */
  readonly isRotating: () => boolean;
  /** This process has forgotten a subject, and the store holds nothing about it any more. */
  readonly onForgotten: (record: ForgetRecord) => void;
}

/**
 * Makes this process forget what another process erased. It polls one short list in the store and acts on each erasure
 * twice: when it has begun and when it is done, because in between this process may read an entry that is not erased yet.
 * Decision 13 goes through the interleavings.
 */
export class Forgets {
  readonly #seen = new Set<string>();
  #lookedAt = Date.now();
  #wasUnsettled = false;
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

  /** @throws StoreError when something could not be erased; the next look tries again */
  async look(): Promise<void> {
    const { store, entries, isRotating, takeUnsettled, onForgotten } = this.options;
    this.#wasUnsettled = takeUnsettled() || this.#wasUnsettled;
    const records = await recordsOf(store);
    for (const each of records) {
      const isNew = !this.#seen.has(markOf(each));
      if (isNew) this.#forget(each.subject);
      const mayBeBack = this.#wasUnsettled || (isNew && isRotating());
      if (mayBeBack && each.subject !== undefined) {
        const erased = await entries.erase(each.subject);
        if (isNew || erased > 0) this.#forget(each.subject); // a reader may have read it again before `erase`
      }
      this.#seen.add(markOf(each));
      if (isNew && each.state === 'done') onForgotten(each);
    }
    // If the store did not answer, the list may be incomplete or an entry not erased: the next look erases again.
    this.#wasUnsettled = takeUnsettled();
    if (this.#wasUnsettled) return;
    this.#forgetAllIfLate();
    const marks = new Set(records.map(markOf));
    for (const mark of this.#seen) if (!marks.has(mark)) this.#seen.delete(mark);
  }

  #forgetAllIfLate(): void {
    const now = Date.now();
    const isLate = now - this.#lookedAt > recordMs / 2;
    this.#lookedAt = now;
    if (isLate) this.#forget(undefined);
  }

  /** Whether `subject` may have been forgotten since `beganAt`. Asked by a reader that lost its lease while it read. */
  async mayHaveForgotten(subject: string, beganAt: number): Promise<boolean> {
    if (Math.abs(Date.now() - beganAt) > recordMs / 2) return true;
    const records = await recordsOf(this.options.store);
    return records.some((each) => each.subject === undefined || each.subject === subject);
  }

  /**
   * Returns a test: is a key about a subject on the list in `store`? Token keys cannot be told from keys about nobody, such as
   * that of a created link. So when the list means every subject, a token key matches only if its subject is also named.
   * @throws StoreError
   */
  async forgottenKeys(store: SealedStore): Promise<(key: string) => boolean> {
    const subjects = (await recordsOf(store)).map(({ subject }) => subject);
    const named = subjects.filter((subject) => subject !== undefined);
    const isAboutNamed = this.options.entries.keysAbout(named);
    return named.length === subjects.length ? isAboutNamed : (key) => isAboutNamed(key) || isSubjectKey(key);
  }

  #forget(subject: string | undefined): void {
    for (const keeper of this.options.keepers) keeper.forget(subject);
  }
}

const markOf = ({ id, state }: ForgetRecord): string => `${id} ${state}`;
