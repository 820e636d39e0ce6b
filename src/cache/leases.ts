import type { Runtime } from '../process/Runtime.js';
import type { EntryName } from './OneKeyStore.js';
import type { SealedStore } from './SealedStore.js';

/** How long a lease lasts unless its holder renews it, in milliseconds: others wait as long for a holder that died. */
export const leaseMs = 3000;
const renewEveryMs = 1000; // two renewals in a row may be late or lost
/** How much longer than its work a holder may keep the lease, in milliseconds: slow timers, a paused event loop. */
export const leaseMarginMs = 2000;

interface Lease {
  readonly store: SealedStore;
  readonly name: EntryName;
  readonly owner: string;
  /** After so many milliseconds others take the holder for dead. */
  readonly longestMs: number;
  readonly runtime: Runtime;
}

/**
 * Renews a lease that `owner` holds, until the returned function is called or the lease was held for `longestMs`. Losing it
 * ends nothing but the renewals.
 */
export function keepRenewing({ store, name, owner, longestMs, runtime }: Lease): () => void {
  const endsAt = runtime.monotonicNow() + longestMs;
  const renew = async () => {
    const leftMs = endsAt - runtime.monotonicNow();
    const isHeld = leftMs > 0 && (await store.renew(name, owner, Math.min(leaseMs, leftMs)));
    if (!isHeld) stop();
  };
  const timer = runtime.setInterval(() => renew().catch(() => undefined), renewEveryMs).unref();
  const stop = () => runtime.clearTimer(timer);
  return stop;
}
