import type { EntryName } from './OneKeyStore.js';
import type { SealedStore } from './SealedStore.js';

/** How long a lease lasts without renewal, in milliseconds. Others wait this long for a holder that died. */
export const leaseMs = 3000;
const renewEveryMs = 1000; // two renewals in a row may be late or lost
/** How much longer than its work a holder may keep the lease, in milliseconds, for slow timers and a paused event loop. */
export const leaseMarginMs = 2000;

interface Lease {
  readonly store: SealedStore;
  readonly name: EntryName;
  readonly owner: string;
  /** After this many milliseconds other processes take the holder for dead. */
  readonly longestMs: number;
}

/** A lease that this process renews. */
export interface KeptLease {
  /** Whether the lease was lost before `letGo`: the store said so, or it was held for `longestMs`. */
  readonly isLost: boolean;
  /** Stops the renewals; does not release the lease. */
  letGo(): void;
}

/** Renews `lease` until `letGo`, until it is lost, or for `longestMs`. A lost lease ends the renewals, not the work. */
export function keepLease({ store, name, owner, longestMs }: Lease): KeptLease {
  const endsAt = performance.now() + longestMs;
  const renew = async () => {
    const leftMs = endsAt - performance.now();
    const isHeld = leftMs > 0 && (await store.renew(name, owner, Math.min(leaseMs, leftMs)));
    if (isHeld) return;
    kept.letGo();
    kept.isLost = true;
  };
  const timer = setInterval(() => renew().catch(() => undefined), renewEveryMs).unref();
  const kept = { isLost: false, letGo: () => clearInterval(timer) };
  return kept;
}
