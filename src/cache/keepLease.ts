import type { Place } from '../stores/Store.js';
import type { SealedStore } from './SealedStore.js';

/** How long a lease lasts without renewal, in milliseconds. Others wait this long for a holder that died. */
export const leaseMs = 3000;
const renewEveryMs = 1000; // two renewals in a row may be late or lost
/** How much longer than its work a holder may keep the lease, in milliseconds, for slow timers and a paused event loop. */
export const leaseMarginMs = 2000;

/** Renews a lease for `longestMs`, or until the returned function is called. A lost lease does not end the work. */
export function keepLease(store: SealedStore, place: Place, owner: string, longestMs: number): () => void {
  const endsAt = performance.now() + longestMs;
  const renew = async () => {
    const isHeld = performance.now() < endsAt && (await store.renew(place, owner, leaseMs));
    if (!isHeld) clearInterval(timer);
  };
  const timer = setInterval(() => renew().catch(() => undefined), renewEveryMs).unref();
  return () => clearInterval(timer);
}
