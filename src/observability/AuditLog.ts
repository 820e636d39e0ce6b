import type { Caller } from '../auth/caller.js';
import type { Config } from '../config/config.js';
import type { LineLimit } from './LineLimit.js';

/** Who was given, or refused, what. A token that is refused is told by the line of its operation. */
export interface AuditEvent {
  readonly action:
    | 'access-denied'
    | 'token-revealed'
    | 'record-shown'
    | 'job-shown'
    | 'client-link-requested'
    | 'taxpayer-forgotten';
  readonly outcome: string;
  /** Undefined for the operator's own commands. */
  readonly caller?: Caller | undefined;
  readonly remoteAddress?: string | undefined;
  readonly requestId: string;
  /** The id; a keyed hash is logged. */
  readonly taxpayer?: string | undefined;
  /** Why it was refused, in words that hold nothing of what was sent. */
  readonly reason?: string | undefined;
}

/** The audit lines of what operations were shown and denied. Callers and taxpayers are keyed hashes: the log holds no names. */
export class AuditLog {
  /** Whether every record and job status that is shown gets a line. */
  readonly wantsAll: boolean;

  constructor(
    private readonly lines: LineLimit,
    which: Config['audit'],
  ) {
    this.wantsAll = which === 'all';
  }

  write({ action, outcome, reason, ...who }: AuditEvent): void {
    const common = { audit: action, outcome, reason };
    // A flood of different denials may be merged; different lines about what was shown never are.
    const general = action === 'access-denied' ? common : undefined;
    this.lines.pass({ level: 'audit', message: 'audit', common, general, ...who });
  }
}
