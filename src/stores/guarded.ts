import type { Store } from './Store.js';
import { StoreError } from './StoreError.js';

export interface Guard {
  /** The store cannot be used, or takes no writes; the error says why. */
  readonly onDegraded?: ((error: StoreError) => void) | undefined;
  readonly onRecovered?: (() => void) | undefined;
  /** An operation has ended, in whatever way. */
  readonly onCommand?: ((command: string, seconds: number) => void) | undefined;
}

/** Time limit of one operation, in milliseconds. To take and to end a lease must together fit into `leaseMarginMs`. */
const limitMs = 250;
/** Operations without an answer, in a row, after which the store counts as degraded. */
export const failuresToDegrade = 2;
const probeEveryMs = 1000;
/** Whether the store answered, but refused: operations go on, because a refusal costs no time and may concern writes alone. */
const isRefusal = ({ trouble }: StoreError) => ['read-only', 'full', 'not-permitted', 'failed'].includes(trouble);

/**
 * Gives `store` a time limit and a circuit breaker: after two operations in a row without an answer, all are refused at once
 * until a probe, a small write each second, succeeds. Nothing stands in for the store: callers know what to do without it.
 */
export function guarded(store: Store, { onDegraded, onRecovered, onCommand }: Guard): Store {
  /** The errors of operations in a row without an answer. The first tells why; later ones, as of a reconnect, often follow. */
  let unanswered: StoreError[] = [];
  let degraded: StoreError | undefined;
  let probing: NodeJS.Timeout | undefined;

  const probe = async () => {
    const key = `probe-${crypto.randomUUID()}`; // in a cluster, another server each time
    await timeLimit(() => store.put(key, Buffer.of(), probeEveryMs, 'always'), limitMs);
    clearInterval(probing);
    if (degraded !== undefined) onRecovered?.();
    degraded = undefined;
    unanswered = [];
  };

  const failed = (error: StoreError) => {
    if (!isRefusal(error)) unanswered.push(error);
    const cause = isRefusal(error) ? error : unanswered.at(-failuresToDegrade);
    const isNoWorse = degraded !== undefined && (isRefusal(error) || !isRefusal(degraded));
    if (cause === undefined || isNoWorse || error.trouble === 'closed') return;
    if (degraded === undefined) onDegraded?.(cause);
    degraded = cause;
    clearInterval(probing);
    probing = setInterval(() => void probe().catch(() => undefined), probeEveryMs).unref();
  };

  const guard =
    <Args extends readonly unknown[], T>(work: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      if (degraded !== undefined && !isRefusal(degraded)) throw degraded;
      const startedAt = performance.now();
      try {
        const answer = await timeLimit(() => work.apply(store, args as never), limitMs);
        unanswered = [];
        return answer;
      } catch (error) {
        const known = error instanceof StoreError ? error : new StoreError('failed');
        failed(known);
        throw known;
      } finally {
        onCommand?.(work.name, (performance.now() - startedAt) / 1000);
      }
    };

  return {
    kind: store.kind,
    acquire: guard(store.acquire),
    settle: guard(store.settle),
    forget: guard(store.forget),
    forgottenSince: guard(store.forgottenSince),
    fields: guard(store.fields),
    get: guard(store.get),
    put: guard(store.put),
    deleteIf: guard(store.deleteIf),
    increment: guard(store.increment),
    close: async () => {
      clearInterval(probing);
      await store.close();
    },
  };
}

/**
 * Runs `work` and rejects with a `timed-out` {@link StoreError} when it takes longer than `limitMs`. The work goes on; its
 * late answer is dropped. When the timer fires very late, this process was too busy to read an answer that may have arrived:
 * `work` gets the same time once more. Timers run before I/O, so it rejects only after one more round of I/O.
 */
export function timeLimit<T>(work: () => Promise<T>, limitMs: number): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const dueAt = performance.now() + limitMs;
    const giveUp = () => setImmediate(() => reject(new StoreError('timed-out')));
    let timer = setTimeout(() => {
      if (performance.now() - dueAt <= limitMs / 5) giveUp();
      else timer = setTimeout(giveUp, limitMs);
    }, limitMs);
    const end = () => clearTimeout(timer);
    work().finally(end).then(resolve, reject);
  });
}
