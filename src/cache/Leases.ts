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

/** One that is renewed. */
export interface KeptLease {
  /** The store said that it is over, before it was let go. */
  readonly isLost: boolean;
  /** Renews it no more. */
  letGo(): void;
}

/** Those that this process holds. */
export class Leases {
  readonly #held = new Set<Lease>();
  #isEnded = false;

  /**
   * Renews a lease until it is let go, lost or was held for `longestMs`. Losing it ends nothing but the renewals.
   */
  keep(lease: Lease): KeptLease {
    const { store, name, owner, longestMs, runtime } = lease;
    const endsAt = runtime.monotonicNow() + longestMs;
    const renew = async () => {
      const leftMs = endsAt - runtime.monotonicNow();
      const isHeld = leftMs > 0 && (await store.renew(name, owner, Math.min(leaseMs, leftMs)));
      if (isHeld) return;
      stop();
      kept.isLost = true;
    };
    const timer = runtime.setInterval(() => renew().catch(() => undefined), renewEveryMs).unref();
    const stop = () => runtime.clearTimer(timer);
    this.#held.add(lease);
    if (this.#isEnded) void store.release(name, owner).catch(() => undefined);
    const kept = {
      isLost: false,
      letGo: () => {
        stop();
        this.#held.delete(lease);
      },
    };
    return kept;
  }

  /** Ends all of them, and at once those that are taken later; the work that they cover goes on. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await Promise.all([...this.#held].map(({ store, name, owner }) => store.release(name, owner)));
  }
}
