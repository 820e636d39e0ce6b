import type { Auditor } from './Auditor.js';

/** No work under a lease takes longer, in milliseconds: from then on others may end the lease. */
const longestHoldMs = 10_000;

/** What the auditor sees of the store's leases and of what is written under them. Times are of the world. */
export class StoreAudit {
  /** By the lease's owner: the line that took it, and when. */
  readonly #holders = new Map<string, { readonly line: unknown; readonly at: number }>();
  /** When a value was made, by its bytes. */
  readonly #madeAt = new Map<string, number>();
  /** Values whose writer holds a lease of the store, or held it. */
  readonly #covered = new Set<string>();

  constructor(private readonly auditor: Auditor) {}

  leaseTaken(line: unknown, owner: Buffer): void {
    this.#holders.set(owner.toString(), { line, at: this.auditor.world.now });
  }

  /** A process wants `value` written under a lease, which may be its own alone. */
  valueMade(value: Buffer): void {
    this.#madeAt.set(value.toString('latin1'), this.auditor.world.now);
  }

  valueCovered(value: Buffer): void {
    this.#covered.add(value.toString('latin1'));
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

  /** What was made under a lease of the store is not written over what was made later. */
  valueWritten(before: Buffer | undefined, value: Buffer): void {
    const bytes = value.toString('latin1');
    const madeAt = this.#covered.has(bytes) ? this.#madeAt.get(bytes) : undefined;
    const beforeMadeAt = before && this.#madeAt.get(before.toString('latin1'));
    if (madeAt === undefined || beforeMadeAt === undefined || beforeMadeAt <= madeAt) return;
    this.auditor.find('newerValuesStay', `replaced by one made ${(beforeMadeAt - madeAt).toFixed(0)} ms before`);
  }
}
