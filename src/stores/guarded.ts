import { inTime } from '../process/pause.js';
import type { Store } from './Store.js';
import { StoreError } from './StoreError.js';

/** What is told of a store's troubles. */
export interface StoreHooks {
  /** The store cannot be used, or takes no writes; the error says why. Without one: it can be used again. */
  readonly onTrouble?: (error?: StoreError) => void;
  /** An operation has ended, in whatever way. */
  readonly onCommand?: (command: string, seconds: number) => void;
}

/** Time limit of one operation, in milliseconds. To take and to end a lease must together fit into `leaseMarginMs`. */
const limitMs = 250;
const probeEveryMs = 1000;
/** A store that refused is probed once it has not refused for this long: one that is nearly full would take a small probe. */
const quietMs = 5000;

/**
 * Gives `store` a time limit and a circuit breaker: after two operations in a row without an answer, all are refused at once
 * until a probe, a small write each second, succeeds. Nothing stands in for the store: callers know what to do without it.
 */
export function guarded(store: Store, { onTrouble, onCommand }: StoreHooks): Store {
  /** Why no operation is made. Operations go on while a store only refuses: that costs no time, and reads may still work. */
  let silence: StoreError | undefined;
  /** The error of the last operation, if it got no answer: it is reported, because the next often only follows from it. */
  let unanswered: StoreError | undefined;
  /** Runs while the store is silent or refuses. */
  let probing: NodeJS.Timeout | undefined;
  /** Set by `close`: a failure after it, such as that of a last probe, must not hide that the store is closed. */
  let isClosed = false;

  const probe = async () => {
    const key = `probe-${crypto.randomUUID()}`; // random, so that each probe may reach another server of a cluster
    await timeLimit(store.put(key, Buffer.of(), probeEveryMs, 'always'), limitMs);
    clearInterval(probing);
    silence = undefined;
    unanswered = undefined;
    onTrouble?.();
  };

  /** Reports the trouble, and looks at intervals whether it has ended. */
  const reportAndProbe = (everyMs: number, error: StoreError) => {
    onTrouble?.(error);
    clearInterval(probing);
    probing = setInterval(() => void probe().catch(noteFailure), everyMs).unref();
  };

  const noteFailure = (error: StoreError) => {
    if (isClosed) return;
    if (!error.mayBeDone) {
      silence = undefined; // it has answered, and refused
      unanswered = undefined;
      return reportAndProbe(quietMs, error);
    }
    if (unanswered && !silence) {
      silence = unanswered;
      reportAndProbe(probeEveryMs, silence);
    }
    unanswered ??= error;
  };

  const guard =
    <Args extends readonly unknown[], T>(work: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      if (silence) throw new StoreError(silence.trouble, silence.code, false);
      const startedAt = performance.now();
      try {
        const answer = await timeLimit(work.apply(store, args as never), limitMs);
        unanswered = undefined;
        return answer;
      } catch (error) {
        const known = error instanceof StoreError ? error : new StoreError('refused');
        noteFailure(known);
        throw known;
      } finally {
        onCommand?.(work.name, (performance.now() - startedAt) / 1000);
      }
    };

  return {
    acquire: guard(store.acquire),
    settle: guard(store.settle),
    forget: guard(store.forget),
    note: guard(store.note),
    notesSince: guard(store.notesSince),
    fields: guard(store.fields),
    get: guard(store.get),
    put: guard(store.put),
    deleteIf: guard(store.deleteIf),
    increment: guard(store.increment),
    close: async () => {
      isClosed = true;
      clearInterval(probing);
      silence = undefined; // so that operations are told that the store is closed, and are not repeated
      await store.close();
    },
  };
}

/** Rejects with a `timed-out` {@link StoreError} when `work` takes longer than `limitMs`; its late answer is dropped. */
export function timeLimit<T>(work: Promise<T>, limitMs: number): Promise<T> {
  return inTime(limitMs, work, () => new StoreError('timed-out'));
}
