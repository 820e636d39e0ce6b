import { hash } from 'node:crypto';
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql';
import type { Holder } from '../admission/Ledger.js';
import { holderOf } from '../auth/caller.js';
import { boundedErrors, maxMistakes } from '../errors/errorBounds.js';
import { GatewayError } from '../errors/errors.js';
import { isBug, maskError, unknownOperation } from '../errors/maskError.js';
import { refusalStatus } from '../http/refusal.js';
import { ResultStream } from '../live/ResultStream.js';
import type { Metrics, Transport } from '../observability/Metrics.js';
import { answerTooLarge, isLongerThan } from './answerSize.js';
import type { Recurring } from './documents/Recurring.js';
import type { ContextFor, OperationFacts } from './OperationContext.js';
import type { OperationObserver } from './observeOperations.js';
import { operationLabel } from './operationLabel.js';
import { refuseManyRepresentations } from './representations.js';
import { malformedVariables, violationsOf } from './variables.js';

/** The GraphQL parameters of an operation, whatever it came by. */
export interface LiveRequest {
  readonly query?: string | undefined;
  /** A trusted document, in place of its text. */
  readonly documentId?: string | undefined;
  readonly operationName?: string | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** How an operation came. */
export type LiveTransport = Exclude<Transport, 'http'>;

export interface LiveOperationsOptions {
  readonly schema: GraphQLSchema;
  readonly contextFor: ContextFor;
  /** MAX_ANSWER_BYTES */
  readonly maxAnswerBytes: number;
  readonly introspection: boolean;
  readonly maxTokens: number;
  /** Documents that were parsed and found valid, by the SHA-256 of their text in hexadecimal, as Apollo names them. */
  readonly documents: Recurring<DocumentNode>;
  /** Rules beyond those of the GraphQL specification. */
  readonly validationRules: readonly ValidationRule[];
  /** MAX_REPRESENTATIONS */
  readonly maxRepresentations: number;
  /** Runs before anything else: may refuse by throwing, or put a stored document in place of its id. */
  readonly admit: (request: LiveRequest, facts: OperationFacts) => Promise<LiveRequest>;
  readonly observe: OperationObserver;
  readonly metrics: Metrics;
  readonly onBug: (error: unknown, requestId: string) => void;
  /** Told that an operation has held up the event loop since `beganAt` (of `performance.now()`). */
  readonly onWork: (holder: Holder, beganAt: number) => void;
}

/** An operation that may run. */
export interface ReadyOperation {
  readonly kind: 'ready';
  readonly type: OperationDefinitionNode['operation'];
  readonly document: DocumentNode;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly facts: OperationFacts;
  readonly transport: LiveTransport;
}

export interface RefusedOperation {
  readonly kind: 'refused';
  /** For a transport whose answer has not begun. */
  readonly status: number;
  readonly errors: readonly MaskedError[];
}

/**
 * Operations of the transports that Apollo Server does not serve: the same rules, limits, doors and error format as its
 * own, for queries and mutations as well as subscriptions.
 */
export class LiveOperations {
  readonly #options: LiveOperationsOptions;
  readonly #rules: readonly ValidationRule[];

  constructor(options: LiveOperationsOptions) {
    this.#options = options;
    this.#rules = [
      ...specifiedRules,
      ...(options.introspection ? [] : [NoSchemaIntrospectionCustomRule]),
      ...options.validationRules,
    ];
  }

  /** Checks an operation without running any of it. Never rejects. */
  async prepare(
    request: LiveRequest,
    facts: OperationFacts,
    transport: LiveTransport,
  ): Promise<ReadyOperation | RefusedOperation> {
    let beganAt = performance.now();
    try {
      const { query, operationName, variables = {} } = await this.#options.admit(request, facts);
      beganAt = performance.now();
      // Only an automatic persisted query comes so far without a text. These are Apollo's words, which its clients know.
      if (!query) throw new GatewayError('BAD_USER_INPUT', 'PersistedQueryNotSupported');
      const document = this.#document(query);
      const operation = getOperationAST(document, operationName);
      if (!operation) throw new GatewayError('BAD_USER_INPUT', unknownOperation);
      const violations = violationsOf(this.#options.schema, operation, variables);
      if (violations.length > 0) throw malformedVariables(violations);
      refuseManyRepresentations({ document, operation, variables }, this.#options.maxRepresentations);
      return { kind: 'ready', type: operation.operation, document, operationName, variables, facts, transport };
    } catch (error) {
      this.#options.metrics.onRequest(transport, 'refused');
      const errors = error instanceof RefusedDocument ? error.errors : [error];
      const masked = errors.map((each) => this.mask(each, facts.requestId));
      return { kind: 'refused', status: refusalStatus(errors[0]), errors: masked };
    } finally {
      this.noteWork(holderOf(facts.caller), beganAt);
    }
  }

  /**
   * Runs what {@link prepare} let pass: one result, or for a subscription a stream of them, which ends with UNAUTHENTICATED
   * when the caller's token does. Never rejects, and neither does the stream.
   */
  async perform(operation: ReadyOperation): Promise<ExecutionResult | ResultStream> {
    const { facts, transport } = operation;
    const args = this.#argsOf(operation);
    const end = this.#options.observe();
    const label = operationLabel(
      this.#options.schema,
      getOperationAST(operation.document, operation.operationName) ?? undefined,
    );
    try {
      const beganAt = performance.now();
      const running = operation.type === 'subscription' ? createSourceEventStream(args) : execute(args);
      this.noteWork(holderOf(facts.caller), beganAt);
      const result = await running;
      if (Symbol.asyncIterator in result) {
        end(label, operation.type, 0);
        this.#options.metrics.onRequest(transport, 'ok');
        return new ResultStream(result[Symbol.asyncIterator](), facts.caller.expiresAt, {
          execute: async (event) => {
            const executed = await execute({ ...this.#argsOf(operation), rootValue: event });
            return this.#masked(executed, facts.requestId);
          },
          failed: (error) => ({ errors: [this.mask(error, facts.requestId)] }),
        });
      }
      end(label, operation.type, result.errors?.length ?? 0);
      this.#options.metrics.onRequest(transport, result.errors ? 'errors' : 'ok');
      return this.#masked(result, facts.requestId);
    } catch (error) {
      end(label, operation.type, 1);
      this.#options.metrics.onRequest(transport, 'errors');
      return { errors: [this.mask(error, facts.requestId)] };
    }
  }

  /** To be called when writing a result has held up the event loop since `beganAt` (of `performance.now()`). */
  noteWork(holder: Holder, beganAt: number): void {
    this.#options.onWork(holder, beganAt);
  }

  /** The form in which an error leaves; a bug is logged. */
  mask(error: unknown, requestId: string): MaskedError {
    const { introspection: suggestions, onBug, metrics } = this.#options;
    if (isBug(error)) onBug(error, requestId);
    const formatted = maskError(error, { requestId, suggestions });
    metrics.onError(formatted.extensions?.['code'] as never);
    return new MaskedError(formatted);
  }

  /** With a context of its own: what one execution has read is not what the next one sees. */
  #argsOf({ document, operationName, variables, facts }: ReadyOperation): ExecutionArgs {
    const { schema, contextFor } = this.#options;
    return { schema, document, operationName, variableValues: variables, contextValue: contextFor(facts) };
  }

  #masked({ data, errors }: ExecutionResult, requestId: string): ExecutionResult {
    const { maxAnswerBytes } = this.#options;
    const masked = {
      ...(errors && { errors: errors.map((error) => this.mask(error, requestId)) }),
      ...(data !== undefined && { data }),
    };
    if (!isLongerThan(masked, maxAnswerBytes)) return masked;
    return { errors: [this.mask(answerTooLarge(maxAnswerBytes), requestId)], data: null };
  }

  #document(query: string): DocumentNode {
    const { documents } = this.#options;
    const name = hash('sha256', query, 'hex');
    const known = documents.get(name);
    if (known) return known;
    const document = parsed(query, this.#options.maxTokens);
    const errors = validate(this.#options.schema, document, this.#rules, { maxErrors: maxMistakes });
    if (errors.length > 0) throw new RefusedDocument(errors);
    documents.offer(name, document);
    return document;
  }
}

/** An error that has been masked: what it is written as is what the caller may see. */
export class MaskedError extends GraphQLError {
  constructor(readonly formatted: GraphQLFormattedError) {
    super(formatted.message, { extensions: formatted.extensions ?? {} });
  }

  override toJSON(): GraphQLFormattedError {
    return this.formatted;
  }
}

/** Parses with the code that tells a syntax error from other mistakes. */
function parsed(query: string, maxTokens: number): DocumentNode {
  try {
    return parse(query, { maxTokens });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    const { message, source, positions } = error;
    throw new GraphQLError(message, { source, positions, extensions: { code: 'GRAPHQL_PARSE_FAILED' } });
  }
}

class RefusedDocument extends Error {
  readonly errors: readonly GraphQLError[];

  constructor(errors: readonly GraphQLError[]) {
    super('The document is not valid');
    const { listed, more } = boundedErrors(errors);
    this.errors = [...listed, ...more];
  }
}
