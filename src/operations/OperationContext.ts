import type { Holder } from '../admission/Ledger.js';
import type { Identity } from '../auth/identify.js';

/** What is known of an operation before anything of it is executed. */
export interface OperationFacts extends Omit<Identity, 'remoteAddress'> {
  readonly requestId: string;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
  /** When the request came (of `performance.now()`); undefined for what stays open. */
  readonly startedAt?: number;
}

/** What the engine reads of the context that it hands to resolvers. */
export interface OperationContext {
  readonly requestId: string;
  readonly holder: Holder;
  /** Bytes of the largest answer allowed (MAX_ANSWER_BYTES). */
  readonly maxAnswerBytes: number;
}
