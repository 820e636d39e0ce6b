import type { ApolloServer } from '@apollo/server';
import { GraphQLError } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Release } from '../admission/Places.js';
import { GatewayError } from '../errors/errors.js';
import { Exit, noCauses, noCodes } from './Exit.js';
import { createApolloServer, type Logger } from './executeByApollo.js';
import { badRequest, type GraphQLRequest } from './GraphQLRequest.js';
import { type KnownOperation, KnownOperations } from './KnownOperations.js';
import {
  type Answer,
  heldBytesOf,
  type Operation,
  type OperationContext,
  type OperationFacts,
  type OperationHooks,
  type OperationType,
  type RequestFacts,
  type Result,
  refusal,
  type Transport,
} from './Operation.js';
import type { ResultStream } from './ResultStream.js';
import type { OperationLimits } from './size.js';
import { laterFieldMs, type SubscribeOptions, subscribe } from './subscribe.js';
import { type TrustedDocuments, withDocument } from './TrustedDocuments.js';

export interface OperationsOptions extends SubscribeOptions {
  readonly limits: OperationLimits;
  readonly introspection: boolean;
  /** Undefined where any document may run. */
  readonly trustedDocuments: TrustedDocuments | undefined;
  readonly hooks: OperationHooks;
  readonly log: Logger;
  /** Whether operations get plans. Default `on`; `off` is for tests. */
  readonly plans?: 'on' | 'off' | undefined;
}

/** Most request bodies that are kept parsed, and the longest of them in characters. */
const keptRequests = { max: 1000, longest: 2048 };

/**
 * The path of every operation, on any transport, once {@link Quota.admit} has let its caller in: {@link prepare} (what is
 * asked, and is it valid?), {@link run} (perform it, and leave by the one exit). Each ends in one {@link OperationRecord}.
 */
export class Operations {
  readonly limits: OperationLimits;
  /** Queries by their body, so that one that comes again is not parsed. Mutations are not kept: they may hold personal data. */
  readonly requests = new LRUCache<string, GraphQLRequest>({ max: keptRequests.max });
  readonly #known: KnownOperations;
  readonly #apollo: ApolloServer<OperationContext>;
  readonly #exit: Exit;

  constructor(private readonly options: OperationsOptions) {
    const { schema, limits, introspection, places, hooks, log, plans = 'on' } = options;
    this.limits = limits;
    this.#apollo = createApolloServer(schema, log);
    this.#known = new KnownOperations({ schema, limits, introspection, plans, apollo: this.#apollo });
    this.#exit = new Exit({ places, maxAnswerBytes: limits.answerBytes, hooks, openSchema: introspection });
  }

  /** @throws Error in one line when the trusted documents cannot be read */
  async start(): Promise<void> {
    await this.options.trustedDocuments?.start();
    await this.#apollo.start();
  }

  stop(): Promise<void> {
    this.options.trustedDocuments?.stop();
    return this.#apollo.stop();
  }

  /**
   * Finds the operation that a request asks for, and checks its variables. Never throws: it may be a refused one. `streamAs`:
   * the transport of a subscription, where it is not that of other operations.
   */
  prepare(asked: GraphQLRequest, facts: OperationFacts, given: Transport, streamAs: Transport = given): Operation {
    const beganAt = performance.now();
    const { quota, contextFor } = this.options;
    // A router that presents its secret writes its own documents, which no list has.
    const trusted = facts.fromRouter === true ? undefined : this.options.trustedDocuments;
    let request: GraphQLRequest | undefined;
    let known: KnownOperation | undefined;
    let work: Operation['work'];
    let transport = given;
    try {
      request = withDocument(asked, trusted);
      known = this.#find(request);
      if (known.type === 'subscription') transport = streamAs;
      refuseWrongWay(request.method, known.type, transport);
      work = known.check(request.variables);
      if (known.rootFields > 1) quota.takeFields(facts, known.rootFields - 1); // `admit` counted the first
      if (trusted !== undefined && request === asked) trusted.report(asked.query ?? '', known.label, facts);
      if (known.isKept && known.type === 'query') this.#keep(asked);
    } catch (error) {
      const { httpStatus = 422 }: Partial<GatewayError> = error instanceof GatewayError ? error : {};
      const kind = request !== undefined && httpStatus === 422 ? 'mistake' : 'refusal';
      work = { kind, errors: mistakesOf(error) };
    }
    const { label = 'none', type = 'none', name } = known ?? {};
    const context = contextFor(facts);
    quota.noteWork(context.holder, beganAt);
    return {
      facts,
      transport,
      label,
      type,
      name,
      work,
      context,
      request: request ?? asked,
      codes: noCodes,
      causes: noCauses,
      outcome: 'ok',
      status: undefined,
      events: undefined,
    };
  }

  /**
   * Performs an operation, a query or a mutation synchronously where possible; a subscription gives a stream of answers.
   * Never throws, and neither does the stream: a refusal is an answer, too.
   */
  run(operation: Operation): Answer | Promise<Answer | ResultStream> {
    const { quota, places } = this.options;
    const { work, context } = operation;
    if (work.way === undefined) return this.#exit.refuse(operation, work);
    const refuse = (error: unknown) => this.#exit.refuse(operation, refusal(error));
    const beganAt = performance.now();
    let release: Release | undefined;
    try {
      if (work.way === 'events') return subscribe(operation, work, this.#exit, this.options).catch(refuse);
      const bytes = heldBytesOf(operation);
      if (bytes > 0) release = places.take('bytes', context.holder, bytes);
      const performing = work.run(work.values, context);
      if (performing instanceof Promise) {
        quota.noteWork(context.holder, beganAt, work.fields * laterFieldMs);
        const performed = performing.finally(release);
        return performed.then((result) => this.#leave(operation, result, performance.now())).catch(refuse);
      }
      release?.();
      return this.#leave(operation, performing, beganAt);
    } catch (error) {
      release?.();
      return refuse(error);
    }
  }

  /** Refuses a request that is no operation yet. Returns the answer. */
  refuse(error: unknown, facts: RequestFacts, transport: Transport): Answer {
    return this.#exit.refuseRequest(error, facts, transport);
  }

  /** Records a connection that is refused or ends before it is authenticated, or a path that does not exist. */
  turnAway(...told: Parameters<Exit['turnAway']>): void {
    this.#exit.turnAway(...told);
  }

  #find({ query, operationName }: GraphQLRequest): KnownOperation {
    // Apollo's own message for a hash alone, on which its clients send the text, some with the hash beside it.
    if (!query) throw badRequest('PersistedQueryNotSupported', 200);
    return this.#known.find(query, operationName);
  }

  #keep(asked: GraphQLRequest): void {
    const { body } = asked;
    if (body !== undefined && body.length <= keptRequests.longest) {
      this.requests.set(body, { ...asked, body: undefined, size: 0 });
    }
  }

  /** Answers, and notes the work since `beganAt`. @throws GatewayError as {@link Exit.leave} */
  #leave(operation: Operation, result: Result, beganAt: number): Answer {
    try {
      return this.#exit.leave(operation, result);
    } finally {
      this.options.quota.noteWork(operation.context.holder, beganAt);
    }
  }
}

/** Documents are read recursively, here and in graphql-js: that the stack overflows is the mistake of whoever nested them. */
function mistakesOf(error: unknown): readonly unknown[] {
  const mistakes: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  if (!mistakes.some(isOverflow)) return mistakes;
  return [new GatewayError('GRAPHQL_VALIDATION_FAILED', 'The document is nested too deeply', { httpStatus: 422 })];
}

function isOverflow(error: unknown): boolean {
  const cause = error instanceof GraphQLError ? error.originalError : error;
  return cause instanceof RangeError && cause.message === 'Maximum call stack size exceeded';
}

function refuseWrongWay(method: GraphQLRequest['method'], type: OperationType, transport: Transport): void {
  if (type === 'subscription' && transport === 'http' && method === 'POST') {
    const another = 'use a WebSocket on this path, or server-sent events on /graphql/stream';
    throw badRequest(`A subscription needs a stream: ${another}`);
  }
  if (method === 'POST' || type === 'query' || (type === 'subscription' && transport !== 'http')) return;
  throw badRequest(`GET requests only support query operations, not ${type} operations`, 405, { allow: 'POST' });
}
