import type { Caller } from '../auth/caller.js';
import type { Sealer } from '../cache/Sealer.js';
import type { Logger } from './log.js';

/** A line about what somebody asked for. Values are of closed sets, keyed hashes and plain client names. */
export interface Line {
  readonly level: 'info' | 'warn' | 'audit';
  readonly message: string;
  readonly requestId: string;
  /** The fields that equal lines have in common. */
  readonly common: object;
  /** Who asked, and about whom: a keyed hash of each name is logged. Equal lines have these in common, too. */
  readonly caller?: Caller | undefined;
  readonly taxpayer?: string | undefined;
  readonly remoteAddress?: string | undefined;
  /** The fields of this line alone, besides its request id. */
  readonly own?: object;
  /** What is left of the line when too many different ones come. A line without it is only combined with equal ones. */
  readonly general?: object | undefined;
}

export const auditActions = [
  'access-denied',
  'token-revealed',
  'record-shown',
  'job-shown',
  'client-link-requested',
  'taxpayer-forgotten',
] as const;
export type AuditAction = (typeof auditActions)[number];

/**
 * Who was given, or refused, what. What a command of the operator causes in the fleet has no caller. (A refused token is no such
 * event: the line of its operation is its audit.)
 */
interface AuditEvent extends Pick<Line, 'requestId' | 'caller' | 'taxpayer' | 'remoteAddress'> {
  readonly action: AuditAction;
  readonly outcome: string;
  /** Why it was refused, in words that hold nothing of what was sent. */
  readonly reason?: string | undefined;
}

const windowMs = 1000;
/** Most different lines in a second that are written in full. Of further ones, only the general form is written. */
const mostDifferent = 8;

/**
 * Keeps floods out of the log. Of equal lines within a second, the first is written at once, and the last at its end, with the
 * `count` of all but the first. When too many different lines come, those with the same general form are combined. No line is
 * lost: each written one stands for `count` lines, or for one without a `count`.
 */
export class LineLimit {
  readonly #log;
  /** For each different line of this second: the last one that was equal to it, and how many came after the first. */
  readonly #seen = new Map<string, { line: Line; count: number }>();
  /** How many of the different lines have a general form. */
  #different = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    log: Logger,
    private readonly sealer: Sealer,
    /** Whether lines name addresses: with TRUSTED_PROXIES. Without it, every address may be that of one proxy. */
    private readonly namesAddresses: boolean,
  ) {
    // No redaction is needed: the lines only have the fields above.
    this.#log = log.child({}, { redact: [] });
  }

  /** Writes the line, or combines it with those that are equal. */
  pass(line: Line): void {
    this.#timer ??= setTimeout(() => this.flush(), windowMs).unref();
    const key = this.#keyOf(line);
    const seen = this.#seen.get(key);
    if (seen !== undefined) {
      seen.line = line;
      seen.count += 1;
      return;
    }
    const { level, message, requestId, general } = line;
    if (general !== undefined) {
      if (this.#different >= mostDifferent) {
        this.pass({ level, message, requestId, common: { ...general, others: true } });
        return;
      }
      this.#different += 1;
    }
    this.#seen.set(key, { line, count: 0 });
    this.write(line);
  }

  /** Passes the audit line of what an operation was shown or denied. */
  audit({ action, outcome, reason, ...who }: AuditEvent): void {
    const common = { audit: action, outcome, reason };
    // A flood of different denials may be merged; different lines about what was shown never are.
    const general = action === 'access-denied' ? common : undefined;
    this.pass({ level: 'audit', message: 'audit', common, general, ...who });
  }

  /** Writes the line at once, whatever came before; `count`: how many equal ones it stands for. */
  write(line: Line, count?: number): void {
    const { level, message, requestId, common, caller, taxpayer, remoteAddress, own } = line;
    const who = {
      caller: caller && this.sealer.digest('caller', caller.key),
      callerKind: caller?.kind,
      address: this.namesAddresses ? remoteAddress : undefined,
      taxpayer: taxpayer && this.sealer.digest('taxpayer', taxpayer),
    };
    this.#log[level]({ requestId, count, ...own, ...common, ...who }, message);
  }

  /** Ends the second: writes what was not written yet. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const seen = [...this.#seen.values()];
    this.#seen.clear();
    this.#different = 0;
    for (const { line, count } of seen) if (count > 0) this.write(line, count);
  }

  #keyOf({ message, common, caller, taxpayer, remoteAddress }: Line): string {
    return JSON.stringify([message, common, caller?.key, taxpayer, this.namesAddresses && remoteAddress]);
  }
}
