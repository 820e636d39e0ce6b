import type { OperationTypeNode } from 'graphql';
import type { ErrorCode } from '../errors/errors.js';
import type { Trail } from '../process/Trail.js';
import type { RequestFacts } from './OperationContext.js';

export const transports = ['http', 'ws', 'sse', 'multipart'] as const;
export type Transport = (typeof transports)[number];
/** The transports whose connection stays open. */
export type LiveTransport = Exclude<Transport, 'http'>;
export type OperationType = `${OperationTypeNode}` | 'none';

/**
 * How an operation ended. `errors`: its caller can act on them; `failed`: the gateway or the service is to blame; `refused`:
 * nothing of it ran.
 */
export type Outcome = 'ok' | 'errors' | 'failed' | 'refused';

/** How often each code is in the answers to an operation. */
export type CodeCounts = ReadonlyMap<ErrorCode, number>;

/**
 * What happened to one operation, one refused request, or one connection that was turned away. Metrics, log, audit and trace
 * read this and nothing else, so they cannot disagree.
 */
export interface OperationRecord {
  readonly facts: RequestFacts;
  readonly transport: Transport;
  readonly outcome: Outcome;
  /** See {@link operationLabel}; `none` where no operation was read. */
  readonly label: string;
  readonly type: OperationType;
  /** The name that the client gave the operation, if it is no number in disguise. */
  readonly name?: string | undefined;
  /** The HTTP status of the answer; undefined on a socket. */
  readonly status?: number | undefined;
  /** What executed it: a plan, Apollo Server, or graphql-js for each event. Undefined when nothing did. */
  readonly way?: 'plan' | 'apollo' | 'events' | undefined;
  readonly codes: CodeCounts;
  /** Why it failed, in words that hold nothing a caller or the service sent. */
  readonly causes: readonly string[];
  readonly trail?: Trail | undefined;
  /** Number of answers; only for streams. */
  readonly events?: number | undefined;
}

export interface OperationHooks {
  /** Called once for each record. */
  readonly onEnd: (record: OperationRecord) => void;
  /** Called for an error that neither a caller nor the service caused. */
  readonly onBug: (error: unknown, requestId?: string) => void;
}
