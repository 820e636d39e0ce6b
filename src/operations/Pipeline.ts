import type { ApolloServer } from '@apollo/server';
import {
  createSourceEventStream,
  type DocumentNode,
  execute,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  type OperationTypeNode,
} from 'graphql';
import type { Holder, Ledger } from '../admission/Ledger.js';
import type { RateLimit } from '../admission/RateLimit.js';
import type { Identity } from '../auth/identify.js';
import { unknownOperation } from '../errors/maskError.js';
import type { Logger } from '../observability/log.js';
import { createApolloServer, type WithDocument } from './apolloServer.js';
import type { DocumentLimits } from './documentLimits.js';
import { DocumentMemory } from './documents/DocumentMemory.js';
import { Documents, InvalidDocument } from './documents/Documents.js';
import { type Answer, Exit, type Result } from './Exit.js';
import { badRequest, type GraphQLRequest } from './GraphQLRequest.js';
import type { ContextFor, OperationContext, OperationFacts } from './OperationContext.js';
import { type EndOfOperation, type OperationHooks, operationLabel, type Transport } from './observeOperations.js';
import type { Execute } from './plans/Plan.js';
import { PlanCache, type PlanMode } from './plans/PlanCache.js';
import { ResultStream } from './ResultStream.js';
import { refuseManyRepresentations } from './representations.js';
import { type TrustedDocuments, withDocument } from './trustedDocuments.js';
import { refuseMalformedVariables } from './variables.js';

export interface PipelineOptions {
  readonly schema: GraphQLSchema;
  readonly contextFor: ContextFor;
  readonly rateLimit: RateLimit;
  readonly ledger: Ledger;
  readonly limits: DocumentLimits;
  readonly introspection: boolean;
  /** The documents that may run; undefined for any. */
  readonly trustedDocuments: TrustedDocuments | undefined;
  readonly planMode?: PlanMode | undefined;
  readonly hooks: OperationHooks;
  readonly log: Logger;
}

/** An operation that was admitted and prepared; nothing of it has run. */
export interface Operation {
  readonly facts: OperationFacts;
  readonly transport: Transport;
  readonly context: OperationContext;
  readonly work: Work;
  /** Bytes of memory that what it was read from takes while its answer is awaited. */
  readonly heldBytes: number;
}

type Work = Planned | Checked | Refused;

interface Planned {
  readonly kind: 'planned';
  readonly type: 'query' | 'mutation';
  readonly label: string;
  readonly execute: Execute;
}

interface Checked {
  readonly kind: 'checked';
  readonly type: `${OperationTypeNode}`;
  readonly label: string;
  readonly request: GraphQLRequest;
  readonly document: DocumentNode;
}

interface Refused {
  readonly kind: 'refused';
  readonly type: `${OperationTypeNode}` | 'none';
  readonly label: string;
  readonly errors: readonly unknown[];
  /** Whether there is no document that this caller may run. */
  readonly isForbidden: boolean;
}

const noVariables = Object.freeze({});
/** Bytes of memory that a body which was read takes, for each of its characters. */
const bytesPerCharacter = 16;
/** Answers that the system takes at once, in bytes; if it does not, the connection ends when there is no room. */
const smallAnswer = 16_384;

/**
 * The way of every operation, whatever it came by: {@link admit} (may this caller ask now?), {@link prepare} (what is
 * asked, and is it valid?), {@link run} (perform it, and leave by the one exit).
 */
export class Pipeline {
  /** Everything kept of what callers send. */
  readonly memory = new DocumentMemory();
  readonly #options: PipelineOptions;
  readonly #exit: Exit;
  readonly #documents: Documents;
  readonly #plans: PlanCache;
  readonly #apollo: ApolloServer<OperationContext>;

  constructor(options: PipelineOptions) {
    const { schema, introspection, limits, hooks, planMode, log } = options;
    this.#options = options;
    this.#exit = new Exit(hooks, introspection);
    this.#documents = new Documents({ schema, introspection, limits, memory: this.memory.documents });
    this.#plans = new PlanCache(schema, { memory: this.memory.plans, mode: planMode, onBug: hooks.onBug });
    this.#apollo = createApolloServer(schema, log);
  }

  start(): Promise<void> {
    return this.#apollo.start();
  }

  stop(): Promise<void> {
    return this.#apollo.stop();
  }

  /**
   * Counts one operation, waits for the caller's turn, and reads what is asked.
   *
   * @throws GatewayError RATE_LIMITED (429), or as `read`
   */
  async admit(
    { caller, remoteAddress }: Identity,
    read: () => GraphQLRequest | Promise<GraphQLRequest>,
  ): Promise<GraphQLRequest> {
    const turn = this.#options.rateLimit.admit(caller, remoteAddress);
    if (turn !== undefined) await turn;
    return read();
  }

  /** Finds what answers a request: a plan, or else a valid document with variables that fit. Never throws. */
  prepare(asked: GraphQLRequest, facts: OperationFacts, transport: Transport): Operation {
    const context = this.#options.contextFor(facts);
    // A body that is known is held once for all, and a stream has a place of its own.
    const heldBytes = transport === 'http' && asked.body !== undefined ? bytesPerCharacter * asked.body.length : 0;
    const work = this.#workOf(asked, facts.fromRouter, transport, context.holder);
    return { facts, transport, context, work, heldBytes };
  }

  #workOf(asked: GraphQLRequest, fromRouter: boolean | undefined, transport: Transport, holder: Holder): Work {
    let request: GraphQLRequest;
    try {
      request = withDocument(asked, fromRouter, this.#options.trustedDocuments);
    } catch (error) {
      return { kind: 'refused', type: 'none', label: 'none', isForbidden: true, errors: [error] };
    }
    return this.#planned(request, asked) ?? this.#checked(request, transport, holder);
  }

  /** Extensions may ask for something else than the text says: such a request gets no plan. */
  #planned(request: GraphQLRequest, { body, ...asked }: GraphQLRequest): Planned | undefined {
    const { method, query, operationName, variables, extensions } = request;
    if (query === undefined || extensions !== undefined) return undefined;
    const plan = this.#plans.find(query, operationName);
    if (plan === undefined || (plan.type === 'mutation' && method === 'GET')) return undefined;
    const execute = plan.prepare(variables ?? noVariables);
    // Not a mutation, whose input may hold personal data.
    if (body !== undefined && plan.type === 'query') this.memory.requests.offer(body, asked);
    return execute && { kind: 'planned', type: plan.type, label: plan.label, execute };
  }

  #checked(request: GraphQLRequest, transport: Transport, holder: Holder): Checked | Refused {
    const { schema, limits } = this.#options;
    const { query, operationName, variables = noVariables, extensions } = request;
    const beganAt = performance.now();
    let operation: OperationDefinitionNode | undefined;
    try {
      // In Apollo's words, which tell its clients to send the text.
      const isPersisted = transport === 'http' && extensions?.['persistedQuery'];
      if (!query || isPersisted) throw badRequest('PersistedQueryNotSupported', 200);
      const document = this.#documents.read(query);
      operation = getOperationAST(document, operationName) ?? undefined;
      if (operation === undefined) throw badRequest(unknownOperation);
      if (transport === 'http') refuseOverPlainHttp(operation, request);
      refuseMalformedVariables(schema, operation, variables);
      refuseManyRepresentations({ document, operation, variables }, limits.representations);
      const label = operationLabel(schema, operation);
      return { kind: 'checked', type: operation.operation, label, request, document };
    } catch (error) {
      const errors = error instanceof InvalidDocument ? error.errors : [error];
      const label = operationLabel(schema, operation);
      return { kind: 'refused', type: operation?.operation ?? 'none', label, errors, isForbidden: false };
    } finally {
      this.noteWork(holder, beganAt);
    }
  }

  /**
   * Performs a query or a mutation, at once where nothing has to be waited for.
   *
   * @throws GatewayError RATE_LIMITED when there is no room, BAD_USER_INPUT when no document may run; Error for a bug; or
   *   rejects with one of these
   */
  run(operation: Operation): Answer | Promise<Answer> {
    const { hooks, ledger } = this.#options;
    const { work, context, heldBytes } = operation;
    if (work.kind === 'refused' && work.isForbidden) throw work.errors[0];
    this.#refuseWithoutRoom(context.holder, heldBytes);
    hooks.onExecution(work.kind === 'planned' ? 'plan' : 'apollo');
    const end = hooks.observe();
    const beganAt = performance.now();
    const performing = this.#perform(work, context);
    if (!(performing instanceof Promise)) return this.#leave(operation, performing, end, beganAt);
    this.noteWork(context.holder, beganAt);
    const release = ledger.take('bytes', context.holder, heldBytes);
    return performing.finally(release).then((result) => this.#leave(operation, result, end, performance.now()));
  }

  /**
   * Runs an operation whose answer goes into something that stays open. Of a subscription it is a stream of answers, which
   * ends with UNAUTHENTICATED when the caller's token does. Never rejects, and neither does the stream.
   */
  async runLive(operation: Operation): Promise<Answer | ResultStream> {
    try {
      const { work } = operation;
      const isSubscription = work.kind === 'checked' && work.type === 'subscription';
      return await (isSubscription ? this.#subscribe(operation, work) : this.run(operation));
    } catch (error) {
      return this.refuse(error, operation.facts, operation.transport);
    }
  }

  /** The answer to a request that goes no further. */
  refuse(
    error: unknown,
    { requestId, startedAt }: Pick<OperationFacts, 'requestId' | 'startedAt'>,
    transport: Transport,
  ): Answer {
    this.#options.hooks.onRequest(transport, 'refused', startedAt);
    return this.#exit.refusal([error], requestId);
  }

  /** To be called when something has held up the event loop since `beganAt` (of `performance.now()`). */
  noteWork(holder: Holder, beganAt: number): void {
    this.#options.rateLimit.noteWork(holder, beganAt);
  }

  #perform(work: Work, context: OperationContext): Result | Promise<Result> {
    if (work.kind === 'planned') return work.execute(context);
    return work.kind === 'refused' ? work : this.#performByApollo(work, context);
  }

  async #performByApollo({ request, document }: Checked, contextValue: OperationContext): Promise<Result> {
    const { query = '', operationName, variables, extensions } = request;
    const { body, http } = await this.#apollo.executeOperation(
      {
        query,
        ...(operationName !== undefined && { operationName }),
        ...(variables !== undefined && { variables }),
        extensions: { document } satisfies WithDocument,
      },
      { contextValue },
    );
    if (body.kind !== 'single') throw new Error('The answer is incremental, which no schema of ours asks for');
    const { data, errors } = body.singleResult;
    if (data != null && extensions === undefined) this.#plans.accept(query);
    return { data, errors, status: http.status };
  }

  #leave({ work, facts, transport, context }: Operation, result: Result, end: EndOfOperation, beganAt: number): Answer {
    const answer = this.#exit.answer(result, context);
    const errors = answer.errors.length;
    end(work.label, work.type, errors);
    if (transport === 'http' && answer.bytes > smallAnswer) this.#refuseWithoutRoom(context.holder, answer.bytes);
    this.#options.hooks.onRequest(transport, errors === 0 ? 'ok' : 'errors', facts.startedAt);
    this.noteWork(context.holder, beganAt);
    return answer;
  }

  #refuseWithoutRoom(holder: Holder, bytes: number): void {
    const refusal = bytes > 0 ? this.#options.ledger.refusalOf('bytes', holder, bytes) : undefined;
    if (refusal !== undefined) throw refusal;
  }

  async #subscribe(operation: Operation, { label, document, request }: Checked): Promise<Answer | ResultStream> {
    const { schema, contextFor, hooks } = this.#options;
    const { facts, transport, context } = operation;
    const args = { schema, document, operationName: request.operationName, variableValues: request.variables };
    const end = hooks.observe();
    const beganAt = performance.now();
    const subscribing = createSourceEventStream({ ...args, contextValue: context });
    this.noteWork(context.holder, beganAt);
    const source = await subscribing;
    if (!(Symbol.asyncIterator in source)) return this.#leave(operation, source, end, performance.now());
    end(label, 'subscription', 0);
    hooks.onRequest(transport, 'ok', undefined);
    return new ResultStream(source[Symbol.asyncIterator](), {
      expiresAt: facts.caller.expiresAt,
      execute: async (rootValue) => {
        // With a context of its own: what one event has read is not what the next one sees.
        const result = await execute({ ...args, contextValue: contextFor(facts), rootValue });
        return this.#exit.answer(result, context);
      },
      failed: (error) => this.#exit.refusal([error], facts.requestId),
    });
  }
}

/** What plain HTTP does not serve. */
function refuseOverPlainHttp({ operation: type }: OperationDefinitionNode, { method }: GraphQLRequest): void {
  if (method === 'GET' && type !== 'query') {
    const message = `GET requests only support query operations, not ${type} operations`;
    throw badRequest(message, 405, { allow: 'POST' });
  }
  if (type !== 'subscription') return;
  throw badRequest(
    'A subscription needs a stream: use a WebSocket on this path, or server-sent events on /graphql/stream',
  );
}
