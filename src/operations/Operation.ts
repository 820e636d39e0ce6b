import type { IncomingMessage } from 'node:http';
import type { GraphQLFormattedError, GraphQLSchema, OperationTypeNode } from 'graphql';
import type { Holder, Release } from '../admission/Places.js';
import type { Identity } from '../auth/Authenticator.js';
import type { ErrorCode } from '../errors/errors.js';
import type { Trail } from '../process/Trail.js';
import type { RunningServices, Surroundings } from '../services.js';
import { type Client, noValues, type Variables } from './GraphQLRequest.js';
import type { KnownOperation } from './KnownOperations.js';

export const transports = ['http', 'ws', 'sse', 'multipart'] as const;
export type Transport = (typeof transports)[number];
export type OperationType = `${OperationTypeNode}` | 'none';

/** What is known of an operation before it is executed. */
export interface OperationFacts extends Identity {
  readonly requestId: string;
  readonly remoteAddress: string | undefined;
  /** Aborts when the caller has disconnected. */
  readonly signal: AbortSignal;
  /** When the request came (of `performance.now()`). */
  readonly startedAt: number;
  readonly client: Client;
  /** The HTTP request, or that of the socket's upgrade. */
  readonly request: IncomingMessage;
  /** Undefined for an operation on a socket. */
  readonly statusOf?: StatusOf;
}

/** What is known of a request that is refused before it is an operation. */
export type RequestFacts = Omit<OperationFacts, keyof Identity | 'signal'> & Partial<OperationFacts>;

/** The part of the resolvers' context that the engine reads. */
export interface OperationContext {
  readonly holder: Holder;
  readonly trail: Trail;
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
  readonly errors: readonly GraphQLFormattedError[];
  readonly text: string;
  readonly bytes: number;
  /** Gives back the room of a large answer; its transport then takes room for what the client has not read. */
  readonly release?: Release;
}

/** What of an answer decides with which HTTP status it is sent, and how its operation is counted. */
export type AnswerHead = Pick<Answer, 'kind' | 'status'>;

/** Gives the HTTP status that an answer is sent with. */
export type StatusOf = (answer: AnswerHead) => number;

export const noCodes: ReadonlyMap<ErrorCode, number> = new Map();
export const noCauses: readonly string[] = [];

/**
 * One operation, one refused request, or one connection that was turned away. At its end, metrics, log, audit and trace read
 * this and nothing else, so they cannot disagree.
 */
export class OperationRecord {
  /** Whether the text of its document was found. */
  hasDocument = false;
  /** The operation that the document asks for, once it was found. */
  known: KnownOperation | undefined;
  /** The variables, with defaults. */
  values: Variables = noValues;
  /** See {@link KnownOperation.fieldsFor}. */
  fields = 0;
  /** Set once the operation may run. */
  context: OperationContext | undefined;
  /** What executed it, or executes each event of it; undefined where nothing ran. */
  way: KnownOperation['way'] | undefined;
  /** Gives back the bytes that the operation holds until it ends. */
  release: Release | undefined;
  /** How often each code was met so far, in the answers or in one that was too large. */
  codes = noCodes;
  /** Why it failed, in words that hold nothing a caller or the service sent. */
  causes = noCauses;
  /** Set at the end: see {@link Outcome}. */
  outcome: Outcome = 'refused';
  /** Set at the end: the HTTP status of the answer; undefined on a socket. */
  status: number | undefined;
  /** Set at the end of a stream: how many answers it had. */
  events: number | undefined;

  constructor(
    readonly facts: RequestFacts,
    public transport: Transport,
  ) {}

  /** See {@link KnownOperation.label}; `none` where no operation was found. */
  get label(): string {
    return this.known?.label ?? 'none';
  }

  get type(): OperationType {
    return this.known?.type ?? 'none';
  }
}

/**
 * How an operation ended. `errors`: its caller can act on them; `failed`: the gateway or the service is to blame; `refused`:
 * nothing of it ran.
 */
export type Outcome = 'ok' | 'errors' | 'failed' | 'refused';

/** An operation that may run. */
export interface Operation extends OperationRecord {
  readonly facts: OperationFacts;
  readonly known: KnownOperation;
  readonly context: OperationContext;
}

/** What operations are run with; started once, with the gateway. */
export interface OperationsOptions
  extends Pick<Surroundings, 'config' | 'log' | 'stopped'>,
    Pick<RunningServices, 'lines' | 'quota' | 'places'> {
  readonly schema: GraphQLSchema;
  /** `fields`: how many the operation answers; `trail`: that of the subscription, if it is for one of its events. */
  readonly contextFor: (facts: OperationFacts, fields: number, trail?: Trail) => OperationContext;
  /** Called once for each operation, refused request and connection turned away, at its end. */
  readonly onEnd: (record: OperationRecord) => void;
}
