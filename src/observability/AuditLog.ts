import type { Caller } from '../auth/caller.js';
import type { Sealer } from '../cache/sealing.js';
import type { Peer } from '../network/peer.js';
import type { LineLimit } from './LineLimit.js';
import type { Logger } from './log.js';

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
  readonly limit: LineLimit;
  readonly which: 'decisions' | 'all';
}

/** The audit lines of what operations were shown and denied. Callers and taxpayers are keyed hashes: the log holds no names. */
export class AuditLog {
  /** Whether every record and job status that is shown gets a line. */
  readonly wantsAll: boolean;
  readonly #log;

  constructor(private readonly options: AuditLogOptions) {
    this.wantsAll = options.which === 'all';
    // No redaction is needed: audit lines only have the fields below.
    this.#log = options.log.child({}, { redact: [] });
  }

  write({ action, outcome, caller, peer, requestId, taxpayer, reason }: AuditEvent): void {
    const { sealer, limit } = this.options;
    const what = { audit: action, outcome, reason };
    limit.pass({
      key: `audit\n${action}\n${outcome}\n${reason}\n${caller?.key}\n${taxpayer}\n${peer?.address}`,
      requestId,
      write: (fields) => this.#log.audit(fields, 'audit'),
      shared: () => ({
        ...what,
        ...whoOf(sealer, caller, peer),
        taxpayer: taxpayer === undefined ? undefined : sealer.digest('taxpayer', taxpayer),
      }),
      // A flood of different denials may be merged; different lines about what was shown never are.
      general: action === 'access-denied' ? what : undefined,
    });
  }
}

/** The fields that tell who asked. */
export function whoOf(sealer: Sealer, caller: Caller | undefined, peer?: Peer) {
  return {
    caller: caller && sealer.digest('caller', caller.key),
    callerKind: caller?.kind,
    address: peer?.address,
  };
}
