import type { Auditor } from './Auditor.js';

/** The longest any work under a lease takes, in milliseconds; after that, other processes may end the lease. */
const longestHoldMs = 10_000;

/** Checks the store's leases and the values written under them. Times are virtual. */
export class StoreAudit {
  /** By the owner value of the lease: the connection that took it, and when. */
  readonly #holders = new Map<string, { readonly line: unknown; readonly at: number }>();
  /** When each value was made, by its bytes. */
  readonly #madeAt = new Map<string, number>();
  /** Values whose writer took its lease in the shared store, even if it has since lost it. */
  readonly #covered = new Set<string>();

  constructor(private readonly auditor: Auditor) {}

  leaseTaken(line: unknown, owner: Buffer): void {
    this.#holders.set(owner.toString(), { line, at: this.auditor.world.now });
  }

  /** A process writes `value` under a lease. While the store is away, the lease may be only in that process. */
  valueMade(value: Buffer): void {
    this.#madeAt.set(value.toString('latin1'), this.auditor.world.now);
  }

  valueCovered(value: Buffer): void {
    this.#covered.add(value.toString('latin1'));
  }

  /** Only its holder may end a lease, until the longest hold is over or a taxpayer has been forgotten. */
  leaseEnded(line: unknown, owner: Buffer): void {
    const { auditor } = this;
    const holder = this.#holders.get(owner.toString());
    if (!holder || holder.line === line || auditor.forgotten.length > 0) return;
    const heldMs = auditor.world.now - holder.at;
    if (heldMs >= longestHoldMs) return;
    auditor.find('leasesEndWithTheirOwner', `another process ended a lease ${heldMs.toFixed(0)} ms after it was taken`);
  }

  /** A value made under a lease of the store must not replace a value that was made later. */
  valueWritten(before: Buffer | undefined, value: Buffer): void {
    const bytes = value.toString('latin1');
    const madeAt = this.#covered.has(bytes) ? this.#madeAt.get(bytes) : undefined;
    const beforeMadeAt = before && this.#madeAt.get(before.toString('latin1'));
    if (madeAt === undefined || beforeMadeAt === undefined || beforeMadeAt <= madeAt) return;
    this.auditor.find('newerValuesStay', `replaced by one made ${(beforeMadeAt - madeAt).toFixed(0)} ms before`);
  }
}
