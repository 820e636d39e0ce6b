import * as z from 'zod';
import { type Runtime, realRuntime, type Timer } from '../process/Runtime.js';
import { leaseMs } from './Leases.js';
import { isSubjectKey } from './OneKeyStore.js';
import type { SealedStore } from './SealedStore.js';
import type { SubjectEntries } from './SubjectEntries.js';

const record = z.object({
  id: z.string(),
  /** `done`: the store holds nothing of it any more. */
  state: z.enum(['begun', 'done']),
  /** Undefined: everybody, in place of a list that would be too long. */
  subject: z.string().optional(),
  /** Epoch milliseconds. */
  at: z.number(),
});
export type ForgetRecord = z.output<typeof record>;
const listed = z.object({ records: z.array(record) });

/** Sealed, as everything in the store. */
const listName = ['forgets'];
/** How long a record is kept, in milliseconds. A process that did not look for half of it may have missed one. */
export const recordMs = 3_600_000;
const maxRecords = 1000;
/** How often each process looks at the list, in milliseconds. */
const lookEveryMs = 2000;

/** Puts `next` on the list in place of the record with its id. @throws StoreError */
export async function writeForget(store: SealedStore, next: ForgetRecord, runtime = realRuntime): Promise<void> {
  let before: Buffer | undefined;
  for (;;) {
    const owner = runtime.randomUUID();
    const turn = await store.acquire(listName, owner, leaseMs, before);
    if (turn.state === 'held') await store.waitForRelease(listName, leaseMs);
    else if (turn.state === 'found') before = turn.entry.bytes;
    else {
      const records = await recordsOf(store);
      const recent = records.filter(({ id, at }) => id !== next.id && Math.abs(next.at - at) < recordMs);
      const kept = recent.length < maxRecords ? recent : [{ ...next, id: runtime.randomUUID(), subject: undefined }];
      if (await store.settle(listName, { records: [...kept, next] }, recordMs, owner)) return;
    }
  }
}

async function recordsOf(store: SealedStore): Promise<readonly ForgetRecord[]> {
  const lists = await store.lookUnderAllKeys(listName);
  const records = lists.flatMap((list) => listed.safeParse(list).data?.records ?? []);
  return [...new Map(records.map((each) => [markOf(each), each])).values()];
}

/** What keeps something of subjects in memory. */
export interface MemoryKeeper {
  /** Drops what is held of `subject`, or of all, and keeps nothing of what is being read of it. */
  forget(subject: string | undefined): void;
}

export interface ForgetsOptions {
  readonly store: SealedStore;
  readonly entries: SubjectEntries;
  readonly keepers: readonly MemoryKeeper[];
  readonly runtime: Runtime;
  /** Whether the store failed to answer since the last call, so that old values may have been written late. */
  readonly takeUnsettled: () => boolean;
  /** Whether other processes may know keys that whoever erased did not know. */
  readonly isRotating: () => boolean;
  /** This process has forgotten a subject that the store holds nothing of any more. */
  readonly onForgotten: (record: ForgetRecord) => void;
}

/**
 * Lets this process forget what was erased by another. It looks at one short list in the store and acts on each record
 * twice: when the erasing began, and when it is done, because between the two it may have read what was not erased yet.
 * Decision 13 goes through the interleavings.
 */
export class Forgets {
  readonly #seen = new Set<string>();
  #lookedAt: number;
  #wasUnsettled = false;
  #stopped = false;
  #timer: Timer | undefined;

  constructor(private readonly options: ForgetsOptions) {
    this.#lookedAt = options.runtime.now();
  }

  /** Looks now, and every two seconds from then on. */
  async start(): Promise<void> {
    await this.look().catch(() => undefined);
    if (!this.#stopped) this.#timer = this.options.runtime.setTimeout(() => void this.start(), lookEveryMs).unref();
  }

  stop(): void {
    this.#stopped = true;
    this.options.runtime.clearTimer(this.#timer);
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
        if (isNew || erased > 0) this.#forget(each.subject); // it may have been read again before it was erased here
      }
      this.#seen.add(markOf(each));
      if (isNew && each.state === 'done') onForgotten(each);
    }
    // The list may not have been read, or not all of it erased.
    this.#wasUnsettled = takeUnsettled();
    if (this.#wasUnsettled) return;
    this.#forgetAllIfLate();
    const marks = new Set(records.map(markOf));
    for (const mark of this.#seen) if (!marks.has(mark)) this.#seen.delete(mark);
  }

  #forgetAllIfLate(): void {
    const now = this.options.runtime.now();
    const isLate = now - this.#lookedAt > recordMs / 2;
    this.#lookedAt = now;
    if (isLate) this.#forget(undefined);
  }

  /** Whether what was read since `beganAt`, under a lease that was lost, may be about a subject that was forgotten since. */
  async mayHaveForgotten(subject: string, beganAt: number): Promise<boolean> {
    if (Math.abs(this.options.runtime.now() - beganAt) > recordMs / 2) return true;
    const records = await recordsOf(this.options.store);
    return records.some((each) => each.subject === undefined || each.subject === subject);
  }

  /**
   * Tells of each key whether it is about somebody on the list in `store`. When the list says everybody, tokens cannot be told
   * from what is about nobody, such as a link that was created: they count as forgotten only where they are named.
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
