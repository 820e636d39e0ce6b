import type { Caller } from '../auth/caller.js';
import type { Sealer } from '../cache/sealing.js';
import type { Peer } from '../network/peer.js';
import type { Logger } from './log.js';
import type { RepeatedLines } from './RepeatedLines.js';

/** Who was given, or refused, what. */
export interface AuditEvent {
  readonly action:
    | 'token-refused'
    | 'access-denied'
    | 'token-revealed'
    | 'record-shown'
    | 'job-shown'
    | 'client-link-requested'
    | 'taxpayer-forgotten';
  readonly outcome: string;
  /** Undefined when the caller's token was refused, and for the operator's own commands. */
  readonly caller?: Caller | undefined;
  /** The client's address; set only with TRUSTED_PROXIES. */
  readonly peer?: Peer | undefined;
  readonly requestId: string;
  /** The id; a keyed hash is logged. */
  readonly taxpayer?: string | undefined;
  /** Why it was refused, in words that hold nothing of what was sent. */
  readonly reason?: string | undefined;
}

export interface AuditLogOptions {
  readonly log: Logger;
  /** Makes the keyed hashes of callers and taxpayers. */
  readonly sealer: Sealer;
  readonly repeated: RepeatedLines;
  readonly which: 'decisions' | 'all';
  readonly traceId?: (() => string | undefined) | undefined;
}

/** Above `fatal`, so that no LOG_LEVEL but `silent` leaves audit lines out. */
const auditLevel = 70;

/** The audit lines, at a level of their own. Callers and taxpayers are keyed hashes, so that the log holds no names. */
export class AuditLog {
  /** Whether every record and job status that is shown gets a line. */
  readonly wantsAll: boolean;
  readonly #log;

  constructor(private readonly options: AuditLogOptions) {
    this.wantsAll = options.which === 'all';
    // No redaction is needed: audit lines only have the fields below.
    this.#log = options.log.child({}, { redact: [], customLevels: { audit: auditLevel } });
  }

  write({ action, outcome, caller, peer, requestId, taxpayer, reason }: AuditEvent): void {
    const { sealer, repeated, traceId } = this.options;
    const { address } = peer ?? {};
    const key = `audit\n${action}\n${outcome}\n${reason}\n${caller?.key}\n${taxpayer}\n${address}`;
    if (repeated.count(key, requestId)) return;
    const common = {
      audit: action,
      outcome,
      reason,
      caller: caller && sealer.digest('caller', caller.key),
      callerKind: caller?.kind,
      address,
      taxpayer: taxpayer === undefined ? undefined : sealer.digest('taxpayer', taxpayer),
    };
    // A flood of different denials may be merged; different lines about what was shown never are.
    const isDenial = action === 'token-refused' || action === 'access-denied';
    const general = isDenial ? { audit: action, outcome, reason } : undefined;
    repeated.note({ write: this.#write, key, common, own: { requestId, traceId: traceId?.() }, general });
  }

  readonly #write = (fields: object) => this.#log.audit(fields, 'audit');
}
