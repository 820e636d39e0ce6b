import type { Auditor } from './Auditor.js';

/** No work under a lease takes longer, in milliseconds: from then on others may end the lease. */
const longestHoldMs = 10_000;

/** What the auditor sees of the store's leases and of what is written under them. Times are of the world. */
export class StoreAudit {
  /** By the lease's owner: the line that took it, and when. */
  readonly #holders = new Map<string, { readonly line: unknown; readonly at: number }>();
  /** Owners that were told that they hold their lease. */
  readonly #told = new Set<string>();
  /** When a value was made under a lease of the store, by its bytes. */
  readonly #madeAt = new Map<string, number>();

  constructor(private readonly auditor: Auditor) {}

  leaseTaken(line: unknown, owner: Buffer): void {
    this.#holders.set(owner.toString(), { line, at: this.auditor.world.now });
  }

  leaseTold(owner: Buffer): void {
    this.#told.add(owner.toString());
  }

  /** A process wants `value` written under the lease of `owner`. */
  valueMade(value: Buffer, owner: Buffer): void {
    if (this.#told.has(owner.toString())) this.#madeAt.set(value.toString('latin1'), this.auditor.world.now);
  }

  /** A lease ends with its holder, with the time it may last, or with what it covers being forgotten. */
  leaseEnded(line: unknown, owner: Buffer): void {
    const { auditor } = this;
    const holder = this.#holders.get(owner.toString());
    if (!holder || holder.line === line || auditor.forgotten.length > 0) return;
    const heldMs = auditor.world.now - holder.at;
    if (heldMs >= longestHoldMs) return;
    auditor.find('leasesEndWithTheirOwner', `another process ended a lease ${heldMs.toFixed(0)} ms after it was taken`);
  }

  /** What was made under a lease is not written over what was made later. */
  valueWritten(before: Buffer | undefined, value: Buffer): void {
    const madeAt = this.#madeAt.get(value.toString('latin1'));
    const beforeMadeAt = before && this.#madeAt.get(before.toString('latin1'));
    if (madeAt === undefined || beforeMadeAt === undefined || beforeMadeAt <= madeAt) return;
    this.auditor.find('newerValuesStay', `replaced by one made ${(beforeMadeAt - madeAt).toFixed(0)} ms before`);
  }
}
