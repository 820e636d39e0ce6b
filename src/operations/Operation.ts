import type { IncomingMessage } from 'node:http';
import type { GraphQLFormattedError, OperationTypeNode } from 'graphql';
import type { Holder } from '../admission/Places.js';
import type { Identity } from '../auth/identify.js';
import type { ErrorCode } from '../errors/errors.js';
import type { Trail } from '../process/Trail.js';
import type { Client, GraphQLRequest } from './GraphQLRequest.js';
import type { Work } from './KnownOperations.js';

export const transports = ['http', 'ws', 'sse', 'multipart'] as const;
export type Transport = (typeof transports)[number];
/** The transports whose connection stays open. */
export type LiveTransport = Exclude<Transport, 'http'>;
export type OperationType = `${OperationTypeNode}` | 'none';

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
}

/** Nothing will run. `mistake`, `refusal`: see {@link Answer}. */
export interface Refused {
  readonly way?: undefined;
  readonly kind: 'mistake' | 'refusal';
  readonly errors: readonly unknown[];
}

export function refusal(error: unknown): Refused {
  return { kind: 'refusal', errors: [error] };
}

/** The result of an execution, as graphql-js gives it; its errors are not masked yet. */
export interface Result {
  /** Absent when the operation was not executed. */
  readonly data?: unknown;
  readonly errors?: readonly unknown[] | undefined;
}

/** The HTTP status of data with errors, for clients that take `application/graphql-response+json` (GraphQL over HTTP, Status). */
export const partialSuccess = 294;

/** An answer, ready to be written. */
export interface Answer {
  /** `mistake`: the document or its variables are wrong; `refusal`: the request is refused, whatever its document says. */
  readonly kind: 'result' | 'mistake' | 'refusal';
  /** HTTP status for clients that take `application/graphql-response+json`: 200, {@link partialSuccess} or a refusal's. */
  readonly status: number;
  /** With status 405: the allowed methods, as in the header Allow. */
  readonly allow?: string | undefined;
  readonly errors: readonly GraphQLFormattedError[];
  readonly text: string;
  readonly bytes: number;
}

/**
 * One operation, one refused request, or one connection that was turned away. At its end, metrics, log, audit and trace read
 * this and nothing else, so they cannot disagree.
 */
export interface OperationRecord {
  readonly facts: RequestFacts;
  readonly transport: Transport;
  /** See {@link operationLabel}; `none` where no operation was read. */
  readonly label: string;
  readonly type: OperationType;
  /** The name that the client gave the operation, if it is no number in disguise. */
  readonly name: string | undefined;
  readonly work: Work | Refused;
  readonly context: OperationContext | undefined;
  /** How often each code is in the answers so far. */
  codes: ReadonlyMap<ErrorCode, number>;
  /** Why it failed, in words that hold nothing a caller or the service sent. */
  causes: readonly string[];
  /** Set at the end: see {@link Outcome}. */
  outcome: Outcome;
  /** Set at the end: the HTTP status of the answer; undefined on a socket. */
  status: number | undefined;
  /** Set at the end of a stream: how many answers it had. */
  events: number | undefined;
}

/**
 * How an operation ended. `errors`: its caller can act on them; `failed`: the gateway or the service is to blame; `refused`:
 * nothing of it ran.
 */
export type Outcome = 'ok' | 'errors' | 'failed' | 'refused';

/** An operation that was admitted. */
export interface Operation extends OperationRecord {
  readonly facts: OperationFacts;
  readonly context: OperationContext;
  readonly request: GraphQLRequest;
}

export interface OperationHooks {
  /** Called once for each operation, refused request and connection turned away, at its end. */
  readonly onEnd: (record: OperationRecord) => void;
  /** Called for an error that neither a caller nor the service caused. */
  readonly onBug: (error: unknown, requestId?: string) => void;
}

/** Bytes of memory per character of a parsed request. */
const bytesPerCharacter = 16;
/** Requests of at most so many characters are not counted in the places: their number bounds the memory they take. */
const smallRequest = 1024;

/** Bytes of memory that a request takes while its answer is awaited, or its stream is open. */
export function heldBytesOf({ request: { size } }: Operation): number {
  return size > smallRequest ? bytesPerCharacter * size : 0;
}
