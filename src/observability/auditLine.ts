import type { Caller } from '../auth/caller.js';
import type { Line } from './LineLimit.js';

export const auditActions = [
  'access-denied',
  'token-revealed',
  'record-shown',
  'job-shown',
  'client-link-requested',
  'taxpayer-forgotten',
] as const;

/** Who was given, or refused, what. (A refused token has no such event: the line of its operation is its audit.) */
export interface AuditEvent {
  readonly action: (typeof auditActions)[number];
  readonly outcome: string;
  /** Undefined for what the operator's own commands have the fleet do. */
  readonly caller?: Caller | undefined;
  readonly remoteAddress?: string | undefined;
  readonly requestId: string;
  /** The id; a keyed hash is logged. */
  readonly taxpayer?: string | undefined;
  /** Why it was refused, in words that hold nothing of what was sent. */
  readonly reason?: string | undefined;
}

/** The audit line of what an operation was shown or denied. */
export function auditLine({ action, outcome, reason, ...who }: AuditEvent): Line {
  const common = { audit: action, outcome, reason };
  // A flood of different denials may be merged; different lines about what was shown never are.
  const general = action === 'access-denied' ? common : undefined;
  return { level: 'audit', message: 'audit', common, general, ...who };
}
