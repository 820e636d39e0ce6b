import type { IncomingMessage } from 'node:http';
import type { Holder } from '../admission/Places.js';
import type { Identity } from '../auth/identify.js';
import type { Trail } from '../process/Trail.js';
import type { Answer } from './answer.js';
import type { Client } from './GraphQLRequest.js';

/** What is known of an operation before it is executed. */
export interface OperationFacts extends Identity {
  readonly requestId: string;
  readonly remoteAddress: string | undefined;
  /** Aborts when the caller has disconnected. */
  readonly signal: AbortSignal;
  /** When the request came (of `performance.now()`). */
  readonly startedAt: number;
  readonly client?: Client;
  /** The HTTP request, or that of the socket's upgrade. */
  readonly request?: IncomingMessage;
  /** The HTTP status that `answer` is sent with; undefined for an operation on a socket. */
  readonly statusOf?: (answer: Pick<Answer, 'kind' | 'status'>) => number;
}

/** What is known of a request that is refused before it is an operation. */
export type RequestFacts = Pick<OperationFacts, 'requestId' | 'startedAt' | 'remoteAddress'> & Partial<OperationFacts>;

/** The part of the resolvers' context that the engine reads. */
export interface OperationContext {
  readonly requestId: string;
  readonly holder: Holder;
  readonly trail: Trail;
  /** Bytes of the largest answer allowed. */
  readonly maxAnswerBytes: number;
}
