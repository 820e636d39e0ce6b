import type { ApolloServer } from '@apollo/server';
import { type DocumentNode, type ExecutionArgs, GraphQLError, type GraphQLSchema, getOperationAST } from 'graphql';
import type { Holder } from '../admission/Ledger.js';
import { holderOf } from '../auth/caller.js';
import { GatewayError } from '../errors/errors.js';
import { unknownOperation } from '../errors/maskError.js';
import { createApolloServer, type Logger } from './apolloServer.js';
import { DocumentMemory } from './documents/DocumentMemory.js';
import { documentReader, type OperationLimits } from './documents/documentReader.js';
import type { Result } from './Exit.js';
import { badRequest, type GraphQLRequest } from './GraphQLRequest.js';
import type { OperationContext, OperationFacts } from './OperationContext.js';
import { type EndOfOperation, type OperationHooks, operationLabel, type Transport } from './observeOperations.js';
import { refuseTooMuch, rootFieldsOf } from './operationSize.js';
import { PlanCache, type PlanMode } from './plans/PlanCache.js';
import { type TrustedDocuments, withDocument } from './TrustedDocuments.js';
import { coercedVariables } from './variables.js';

export interface WorkFinderOptions {
  readonly schema: GraphQLSchema;
  readonly limits: OperationLimits;
  readonly introspection: boolean;
  /** Undefined where any document may run. */
  readonly trustedDocuments: TrustedDocuments | undefined;
  readonly planMode?: PlanMode | undefined;
  readonly hooks: OperationHooks;
  readonly log: Logger;
  /** Called when the event loop was busy for `holder` since `beganAt` (of `performance.now()`). */
  readonly noteWork: (holder: Holder, beganAt: number) => void;
}

/** An operation, and what answers it. */
export type Work = KnownWork & (Execution | Subscription | Refusal);

interface KnownWork {
  /** See {@link operationLabel}. */
  readonly label: string;
  readonly type: Parameters<EndOfOperation>[1];
  readonly rootFields: number;
}

/** `perform` throws or rejects only for a bug. */
type Execution = { readonly by: 'plan' | 'apollo'; readonly perform: Perform };
type Perform = (context: OperationContext) => Result | Promise<Result>;
/** What graphql-js runs for each event. `busyMs`: estimated milliseconds of an execution that waits, after it has begun. */
export interface Subscription {
  readonly by: 'subscription';
  readonly args: Pick<ExecutionArgs, 'schema' | 'document' | 'operationName' | 'variableValues'>;
  readonly busyMs: number;
}
/** Nothing runs. `isThrown`: the only error is thrown, for the transport to refuse; otherwise the errors are the answer. */
type Refusal = { readonly by: 'refusal'; readonly errors: readonly unknown[]; readonly isThrown: boolean };

/** Estimated milliseconds that Apollo takes per field. Apollo waits before it executes, so the time cannot be measured. */
const apolloFieldMs = 0.002;
const noVariables = Object.freeze({});
const refused = { by: 'refusal', rootFields: 0 } as const;

/** Finds what answers a request: a plan where there is one, or else Apollo, once the document and its variables are checked. */
export class WorkFinder {
  /** All caches of what callers send. */
  readonly memory = new DocumentMemory();
  readonly #read: (query: string) => DocumentNode;
  readonly #plans: PlanCache;
  readonly #apollo: ApolloServer<OperationContext>;

  constructor(private readonly options: WorkFinderOptions) {
    const { schema, introspection, limits, hooks, planMode, log } = options;
    this.#read = documentReader(schema, limits, introspection, this.memory.documents);
    const { plans: memory } = this.memory;
    const { representations: maxRepresentations } = limits;
    const { onBug } = hooks;
    this.#plans = new PlanCache(schema, { memory, maxRepresentations, mode: planMode, onBug });
    this.#apollo = createApolloServer(schema, log);
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

  /** Never throws: a request to refuse gives a `refusal`. */
  find(asked: GraphQLRequest, facts: OperationFacts, transport: Transport): Work {
    const beganAt = performance.now();
    const work = this.#find(asked, facts, transport);
    this.options.noteWork(holderOf(facts.caller), beganAt);
    return work;
  }

  #find(asked: GraphQLRequest, facts: OperationFacts, transport: Transport): Work {
    // A router that presents its secret writes its own documents, which no list has.
    const trusted = facts.fromRouter === true ? undefined : this.options.trustedDocuments;
    let request: GraphQLRequest;
    try {
      request = withDocument(asked, trusted);
    } catch (error) {
      return refusing(error);
    }
    const plan = this.#planFor(request);
    const work = plan ?? this.#checked(request, transport);
    // Saves parsing a body that comes again. Mutations are not cached: their input may hold personal data.
    if (plan?.type === 'query' && asked.body !== undefined) {
      this.memory.requests.offer(asked.body, { ...asked, body: undefined, size: undefined });
    }
    const isUntrusted = trusted !== undefined && request === asked && work.by !== 'refusal';
    if (isUntrusted) trusted.report(asked.query ?? '', work.label, facts);
    return work;
  }

  /** A request with extensions gets no plan: they may ask for something other than the text says. */
  #planFor({ method, query, operationName, variables, extensions }: GraphQLRequest): Work | undefined {
    if (query === undefined || extensions !== undefined) return undefined;
    const plan = this.#plans.find(query, operationName, variables ?? noVariables);
    return plan?.type === 'mutation' && method === 'GET' ? undefined : plan;
  }

  #checked(request: GraphQLRequest, transport: Transport): Work {
    const { schema, introspection } = this.options;
    const { query, operationName, variables = noVariables, method } = request;
    let type: Work['type'] = 'none';
    let label = 'none';
    try {
      // Apollo's own message for a hash alone, on which its clients send the text, some with the hash beside it.
      if (!query) throw badRequest('PersistedQueryNotSupported', 200);
      const document = this.#read(query);
      const operation = getOperationAST(document, operationName);
      if (!operation) throw badRequest(unknownOperation);
      type = operation.operation;
      label = operationLabel(schema, operation, document);
      if (transport === 'http') refuseOverPlainHttp(method, type);
      const coerced = coercedVariables(schema, operation, variables, introspection);
      const roots = rootFieldsOf(schema, document, operation, coerced);
      const fields = refuseTooMuch(roots, coerced, this.options.limits.representations);
      const busyMs = fields * apolloFieldMs;
      const perform: Perform = (context) => this.#execute(request, document, busyMs, context);
      const args = { schema, document, operationName, variableValues: variables };
      const way =
        type === 'subscription' ? ({ by: type, args, busyMs } as const) : ({ by: 'apollo', perform } as const);
      return { type, label, rootFields: roots.byKey.length, ...way };
    } catch (error) {
      const errors = error instanceof AggregateError ? error.errors : [error];
      return {
        ...refused,
        type,
        label,
        errors: errors.some(isOverflow) ? [nestedTooDeeply()] : errors,
        isThrown: false,
      };
    }
  }

  async #execute(asked: GraphQLRequest, document: DocumentNode, busyMs: number, contextValue: OperationContext) {
    const { query = '', operationName, variables, extensions } = asked;
    const named = operationName === undefined ? {} : { operationName };
    const request = { query, ...named, variables: variables ?? noVariables, extensions: { document } };
    const { body } = await this.#apollo.executeOperation(request, { contextValue });
    if (body.kind !== 'single') throw new Error('The answer is incremental, which no schema of ours asks for');
    const { data, errors } = body.singleResult;
    if (data != null && extensions === undefined) this.#plans.accept(query);
    return { data, errors, busyMs };
  }
}

/** Refuses a request, whatever its document says. */
export function refusing(error: unknown): Work {
  return { ...refused, type: 'none', label: 'none', errors: [error], isThrown: true };
}

/** Documents are read recursively, here and in graphql-js: that the stack overflows is the mistake of whoever nested them. */
function isOverflow(error: unknown): boolean {
  const cause = error instanceof GraphQLError ? error.originalError : error;
  return cause instanceof RangeError && cause.message === 'Maximum call stack size exceeded';
}

function nestedTooDeeply(): GatewayError {
  return new GatewayError('GRAPHQL_VALIDATION_FAILED', 'The document is nested too deeply', { httpStatus: 422 });
}

function refuseOverPlainHttp(method: GraphQLRequest['method'], type: Work['type']): void {
  if (method === 'GET' && type !== 'query') {
    throw badRequest(`GET requests only support query operations, not ${type} operations`, 405, { allow: 'POST' });
  }
  const another = 'use a WebSocket on this path, or server-sent events on /graphql/stream';
  if (type === 'subscription') throw badRequest(`A subscription needs a stream: ${another}`);
}
