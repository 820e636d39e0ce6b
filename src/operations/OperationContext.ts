import type { Holder } from '../admission/Ledger.js';
import type { Caller } from '../auth/caller.js';

/** What is known of an operation before anything of it is executed. */
export interface OperationFacts {
  readonly caller: Caller;
  /** Tells callers without an identity apart, for the rate limit. */
  readonly remoteAddress?: string | undefined;
  readonly requestId: string;
  /** Whether the request proved that it comes from the router; undefined when no proof is configured. */
  readonly fromRouter: boolean | undefined;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** What the engine reads of the context that it hands to resolvers. */
export interface OperationContext {
  readonly requestId: string;
  /** Under whose name what the operation takes is counted. */
  readonly holder: Holder;
  /** Bytes of the largest answer allowed (MAX_ANSWER_BYTES). */
  readonly maxAnswerBytes: number;
}

/** Makes the context of one operation. */
export type ContextFor = (facts: OperationFacts) => OperationContext;
