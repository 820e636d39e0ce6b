import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Places } from '../admission/Places.js';
import { type Caller, holderOf } from '../auth/caller.js';
import { credentialsOf, type Identify, type Identity } from '../auth/identify.js';
import type { Peer } from '../network/peer.js';
import { type Answer, partialSuccess } from '../operations/answer.js';
import { type Client, clientOf } from '../operations/clientName.js';
import { badRequest, type GraphQLRequest } from '../operations/GraphQLRequest.js';
import type { Operation } from '../operations/Operation.js';
import type { OperationFacts } from '../operations/OperationContext.js';
import type { Operations } from '../operations/Operations.js';
import { type AnswerHeaders, refuseInTurn, requestIdOf, writeJson } from './answering.js';
import { readGraphQLRequest } from './graphqlRequest.js';
import { operationStatusIn, readAccept, type StreamForm, streamFor } from './mediaTypes.js';
import type { Unread } from './Unread.js';

export interface GraphQLEndpointOptions {
  readonly operations: Operations;
  readonly identify: Identify;
  readonly places: Places;
  readonly unread: Unread;
  readonly tracing?: HttpTracing | undefined;
}

/** Spans of operations over plain HTTP. */
export interface HttpTracing {
  /** Runs `work`, a request's operation, as part of its trace. `mayWait`: false when memory will likely answer it. */
  resume<T>(response: ServerResponse, mayWait: boolean, work: () => T): T;
}

/** What is already known about a request when its operation turns out to need a stream. */
export interface BegunRequest {
  readonly requestId: string;
  /** When the request arrived (of `performance.now()`). */
  readonly startedAt: number;
  readonly identity: Identity;
  readonly asked: GraphQLRequest;
}

/** Answers a request with a stream; must not reject. `begun`: what is known if the request was already read. */
export type StreamHandler = (request: IncomingMessage, response: ServerResponse, begun?: BegunRequest) => Promise<void>;

/** `/graphql` over HTTP: one request, one answer, in a form that suits the operation and that the client accepts. */
export class GraphQLEndpoint {
  constructor(
    private readonly options: GraphQLEndpointOptions,
    private readonly streams: Readonly<Record<StreamForm, StreamHandler>>,
  ) {}

  /** Never rejects: every failure becomes an answer in GraphQL's form. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const accepted = readAccept(request.headers.accept);
    const { json } = accepted;
    const stream = streamFor(accepted, request.method);
    // A client that accepts only streams gets even the answer to a query as a stream.
    if (json === undefined && stream !== undefined) return this.streams[stream](request, response);
    const { operations, identify, unread, tracing } = this.options;
    const startedAt = performance.now();
    const requestId = requestIdOf(request);
    const credentials = credentialsOf(request);
    let identity: Identity | undefined;
    try {
      if (json === undefined) throw notAcceptable();
      const identifying = identify(credentials);
      identity = identifying instanceof Promise ? await identifying : identifying;
      const { caller, fromRouter, remoteAddress, peer } = identity;
      const holder = holderOf(caller);
      const asked = await operations.admit(identity, () => readGraphQLRequest(request, holder, this.options));
      const facts = new HttpFacts(caller, fromRouter, remoteAddress, peer, requestId, startedAt, response);
      const operation = operations.prepare(asked, facts, 'http');
      if (operation.type === 'subscription' && stream !== undefined) {
        const begun = { requestId, startedAt, identity, asked };
        const answering = () => this.streams[stream](request, response, begun);
        return await (tracing ? tracing.resume(response, true, answering) : answering());
      }
      const running = tracing
        ? tracing.resume(response, !isQueryByPlan(operation), () => operations.run(operation))
        : operations.run(operation);
      const answer = running instanceof Promise ? await running : running;
      if (answer.kind === 'refusal') return await refuseInTurn(response, operations, answer, facts);
      const form = (fromRouter === true && accepted.jsonForRouter) || json;
      writeAnswer(response, answer, { requestId, form, rateLimit: operations.rateLimitOf(identity) });
      unread.holdAnswer(response, holder);
    } catch (error) {
      const { remoteAddress, peer } = credentials;
      const known = { remoteAddress, peer, ...identity, requestId, startedAt, client: clientOf(request.headers) };
      const refuse = () => operations.refuse(error, known, 'http');
      const refusal = tracing ? tracing.resume(response, false, refuse) : refuse();
      await refuseInTurn(response, operations, refusal, known);
    }
  }
}

const notAcceptable = () =>
  badRequest('The Accept header must allow application/graphql-response+json or application/json', 406);

function isQueryByPlan({ type, work }: Operation): boolean {
  return work.way === 'plan' && type === 'query';
}

/** The facts of a plain HTTP request. Most requests need no abort signal, so it is created on first use. */
class HttpFacts implements OperationFacts {
  #signal: AbortSignal | undefined;

  constructor(
    readonly caller: Caller,
    readonly fromRouter: boolean | undefined,
    readonly remoteAddress: string | undefined,
    readonly peer: Peer | undefined,
    readonly requestId: string,
    readonly startedAt: number,
    private readonly response: ServerResponse,
  ) {}

  get client(): Client {
    return clientOf(this.response.req.headers);
  }

  /** Aborts when the connection ends before the answer was written. */
  get signal(): AbortSignal {
    if (this.#signal !== undefined) return this.#signal;
    const controller = new AbortController();
    this.#signal = controller.signal;
    if (this.response.destroyed) controller.abort();
    this.response.once('close', () => {
      if (!this.response.writableFinished) controller.abort();
    });
    return controller.signal;
  }
}

function writeAnswer(response: ServerResponse, answer: Answer, headers: AnswerHeaders): void {
  const status = operationStatusIn(headers.form, answer);
  if (status === partialSuccess) response.statusMessage = 'Partial Success';
  writeJson(response, status, answer, headers);
}
