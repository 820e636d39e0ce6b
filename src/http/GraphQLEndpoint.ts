import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ApolloServer, HeaderMap } from '@apollo/server';
import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { Admission } from '../admission/Admission.js';
import type { Ledger } from '../admission/Ledger.js';
import { type Caller, holderOf } from '../auth/caller.js';
import { credentialsOf, type Identify } from '../auth/identify.js';
import { boundedErrors } from '../errors/errorBounds.js';
import { isBug, maskError } from '../errors/maskError.js';
import type { Metrics } from '../observability/Metrics.js';
import { answerTooLarge, isLongerThan } from '../operations/answerSize.js';
import type { DocumentMemory } from '../operations/documents/DocumentMemory.js';
import type { ContextFor, OperationContext, OperationFacts } from '../operations/OperationContext.js';
import type { OperationObserver } from '../operations/observeOperations.js';
import type { PlanResult } from '../operations/plans/Plan.js';
import type { PlanCache, PreparedPlan } from '../operations/plans/PlanCache.js';
import { type TrustedDocuments, withDocument } from '../operations/trustedDocuments.js';
import {
  type GraphQLRequest,
  type MediaType,
  mediaTypeFor,
  type RequestLimits,
  readGraphQLRequest,
} from './graphqlRequest.js';
import { sendRefusal } from './refusal.js';
import { requestIdOf } from './requestIdOf.js';
import type { Unread } from './unread.js';

export interface GraphQLEndpointOptions {
  readonly apollo: ApolloServer<OperationContext>;
  readonly plans: PlanCache;
  readonly memory: DocumentMemory;
  /** Told of the operations that plans execute; Apollo tells of its own. */
  readonly observe: OperationObserver;
  readonly identify: Identify;
  readonly contextFor: ContextFor;
  readonly ledger: Ledger;
  readonly metrics: Metrics;
  readonly rateLimit: Admission;
  readonly unread: Unread;
  /** The documents that may run; undefined for any. */
  readonly trustedDocuments: TrustedDocuments | undefined;
  readonly requestLimits: RequestLimits;
  readonly suggestions: boolean;
  readonly onBug: (error: unknown, requestId: string) => void;
}

/** An answer as it is to be written. */
interface Outcome {
  readonly status: number;
  readonly allow?: string | undefined;
  readonly text: string;
  readonly errors: number;
}

const noVariables = Object.freeze({});
/** In UTF-8, for a character that JavaScript counts as one. */
const maxBytesPerCharacter = 3;
/** Of memory, about as many as a body takes that was read, for each of its characters. */
const bytesPerCharacter = 16;
/** Answers that the system takes at once, in bytes; if it does not, the connection ends when there is no room. */
const smallAnswer = 16_384;

/** `/graphql` over HTTP: who is calling, what they ask, the answer in the form they accept. */
export class GraphQLEndpoint {
  readonly #options: GraphQLEndpointOptions;

  constructor(options: GraphQLEndpointOptions) {
    this.#options = options;
  }

  /** Answers one request. Never rejects: whatever happens becomes an answer in GraphQL's form. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { metrics, identify, rateLimit, requestLimits, contextFor, ledger, memory } = this.#options;
    const startedAt = performance.now();
    const requestId = requestIdOf(request);
    try {
      const mediaType = mediaTypeFor(request.headers.accept);
      const identifying = identify(credentialsOf(request));
      const { caller, fromRouter, remoteAddress } = identifying instanceof Promise ? await identifying : identifying;
      const turn = rateLimit.admit(caller, remoteAddress);
      if (turn !== undefined) await turn;
      const account = { ledger, holder: holderOf(caller), rateLimit };
      const asked = await readGraphQLRequest(request, requestLimits, { known: memory.requests, account });
      const parameters = withDocument(asked, fromRouter, this.#options.trustedDocuments);
      const facts = new HttpFacts(caller, requestId, fromRouter, response);
      const context = contextFor(facts);
      // Every request came this far on the same way; from here on, it is answered by a plan or by Apollo.
      const plan = this.#planFor(parameters);
      if (plan?.type === 'query') this.#remember(asked);
      const heldBytes = bytesPerCharacter * (asked.body?.length ?? 0); // one that is known is held once for all
      const refusal = heldBytes > 0 ? ledger.refusalOf('bytes', context.holder, heldBytes) : undefined;
      if (refusal !== undefined) throw refusal;
      let beganAt = performance.now();
      const running = plan ? this.#runPlan(plan, context) : this.#runApollo(parameters, context, mediaType);
      let outcome: Outcome;
      if (running instanceof Promise) {
        rateLimit.noteWork(context.holder, beganAt);
        outcome = await this.#holding(heldBytes, context, running);
        beganAt = performance.now();
      } else outcome = running;
      this.#send(response, mediaType, outcome, context);
      rateLimit.noteWork(context.holder, beganAt);
      metrics.onRequest('http', outcome.errors === 0 ? 'ok' : 'errors', startedAt);
    } catch (error) {
      sendRefusal(response, error, { requestId, mask: (each) => this.#refusal(each, requestId) });
      metrics.onRequest('http', 'refused', startedAt);
    }
  }

  /** Counts what a request takes for as long as its operation runs. */
  async #holding(bytes: number, { holder }: OperationContext, running: Promise<Outcome>): Promise<Outcome> {
    const release = this.#options.ledger.take('bytes', holder, bytes);
    try {
      return await running;
    } finally {
      release();
    }
  }

  /** Keeps a request by its body. Not a mutation, whose input may hold personal data. */
  #remember({ body, ...request }: GraphQLRequest): void {
    if (body !== undefined) this.#options.memory.requests.offer(body, request);
  }

  /**
   * Extensions may ask for something else than the text says, so that such a request is Apollo's; and so is the refusal of
   * a mutation by GET.
   */
  #planFor({ method, query, operationName, variables, extensions }: GraphQLRequest): PreparedPlan | undefined {
    if (query === undefined || extensions !== undefined) return undefined;
    const plan = this.#options.plans.find(query, operationName, variables ?? noVariables);
    return plan?.type === 'mutation' && method === 'GET' ? undefined : plan;
  }

  /** At once where nothing has to be waited for. */
  #runPlan(plan: PreparedPlan, context: OperationContext): Outcome | Promise<Outcome> {
    this.#options.metrics.onExecution('plan');
    const end = this.#options.observe();
    const finish = (result: PlanResult): Outcome => {
      const outcome = this.#written(result, context);
      end(plan.label, plan.type, outcome.errors);
      return outcome;
    };
    const executing = plan.run(context);
    return executing instanceof Promise ? executing.then(finish) : finish(executing);
  }

  #written({ json, errors }: PlanResult, { requestId, maxAnswerBytes }: OperationContext): Outcome {
    const masked = errors && this.#masked(errors, requestId);
    const text = masked === undefined ? `{"data":${json}}` : `{"errors":${JSON.stringify(masked)},"data":${json}}`;
    const mayBeLonger = maxBytesPerCharacter * text.length > maxAnswerBytes;
    if (mayBeLonger && Buffer.byteLength(text) > maxAnswerBytes) return this.#tooLarge(maxAnswerBytes, requestId);
    return { status: 200, text, errors: masked?.length ?? 0 };
  }

  async #runApollo(
    { method, documentId: _documentId, body: _body, ...parameters }: GraphQLRequest,
    context: OperationContext,
    mediaType: MediaType,
  ): Promise<Outcome> {
    this.#options.metrics.onExecution('apollo');
    const { body, http } = await this.#options.apollo.executeOperation(
      {
        ...withoutAbsent(parameters),
        http: { method, headers: new HeaderMap(), search: '', body: undefined },
      },
      { contextValue: context },
    );
    if (body.kind !== 'single') throw new Error('The answer is incremental, which no schema of ours asks for');
    const { data, errors } = body.singleResult;
    const { query, extensions } = parameters;
    if (data != null && query !== undefined && extensions === undefined) {
      this.#options.plans.accept(query);
    }
    const { requestId, maxAnswerBytes } = context;
    const finish = data === undefined ? this.#refusals : this.#finished;
    const finished = errors && finish.call(this, errors, requestId);
    const answer = finished === undefined ? { data } : { errors: finished, data };
    if (isLongerThan(answer, maxAnswerBytes)) return this.#tooLarge(maxAnswerBytes, requestId);
    const isRefusal = data === undefined && mediaType === 'application/json, refusals as 200';
    return {
      status: isRefusal ? 200 : (http.status ?? 200),
      allow: http.headers.get('allow'),
      text: JSON.stringify(answer),
      errors: finished?.length ?? 0,
    };
  }

  #tooLarge(maxBytes: number, requestId: string): Outcome {
    const errors = this.#masked([answerTooLarge(maxBytes)], requestId);
    return { status: 200, text: JSON.stringify({ errors, data: null }), errors: errors.length };
  }

  /**
   * Writes an answer. What its reader does not take is counted.
   *
   * @throws GatewayError RATE_LIMITED when there is no room for a large one
   */
  #send(
    response: ServerResponse,
    mediaType: MediaType,
    outcome: Outcome,
    { requestId, holder }: OperationContext,
  ): void {
    const { ledger, unread } = this.#options;
    const { status, allow, text } = outcome;
    const length = Buffer.byteLength(text);
    const refusal = length > smallAnswer ? ledger.refusalOf('bytes', holder, length) : undefined;
    if (refusal !== undefined) throw refusal;
    const isFull = mediaType === 'application/graphql-response+json';
    const headers = [
      ...['x-request-id', requestId, 'cache-control', 'no-store'],
      ...[
        'content-type',
        isFull ? 'application/graphql-response+json; charset=utf-8' : 'application/json; charset=utf-8',
      ],
      ...['content-length', `${length}`],
    ];
    if (allow !== undefined) headers.push('allow', allow);
    response.writeHead(status, headers);
    // Text without a character beyond ASCII is the same in both encodings, and written faster in this one.
    response.end(text, length === text.length ? 'latin1' : 'utf8');
    unread.holdAnswer(response, holder);
  }

  /** What Apollo's `formatError` and our plugin do for its answers. */
  #masked(errors: readonly GraphQLError[], requestId: string): readonly GraphQLFormattedError[] {
    const { suggestions, onBug } = this.#options;
    for (const error of errors) if (isBug(error)) onBug(error, requestId);
    const masked = errors.map((error) => maskError(error, { requestId, suggestions }));
    return this.#finished(masked, requestId);
  }

  /**
   * Adds what only the request knows to errors that are masked already. They are put in the order of the document, then of
   * the lists in the answer: otherwise it would depend on which of several calls failed first.
   */
  #finished(errors: readonly GraphQLFormattedError[], requestId: string): readonly GraphQLFormattedError[] {
    for (const { extensions } of errors) this.#options.metrics.onError(extensions?.['code'] as never);
    const finished = errors.map((error) => ({ ...error, extensions: { ...error.extensions, requestId } }));
    return finished.length > 1 ? finished.sort(inDocumentOrder) : finished;
  }

  /** The errors of a document that was not executed. */
  #refusals(errors: readonly GraphQLFormattedError[], requestId: string): readonly GraphQLFormattedError[] {
    const { listed, more } = boundedErrors(errors);
    return [...this.#finished(listed, requestId), ...this.#masked(more, requestId)];
  }

  /** The form in which a refusal leaves; a bug is logged. */
  #refusal(error: unknown, requestId: string): GraphQLFormattedError {
    const { suggestions, onBug, metrics } = this.#options;
    if (isBug(error)) onBug(error, requestId);
    const masked = maskError(error, { requestId, suggestions });
    metrics.onError(masked.extensions?.['code'] as never);
    return masked;
  }
}

/** The facts of a request over HTTP. Its signal is made when first asked for, which only a long wait does. */
class HttpFacts implements OperationFacts {
  #signal: AbortSignal | undefined;

  constructor(
    readonly caller: Caller,
    readonly requestId: string,
    readonly fromRouter: boolean | undefined,
    readonly response: ServerResponse,
  ) {}

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

function inDocumentOrder(a: GraphQLFormattedError, b: GraphQLFormattedError): number {
  const [here, there] = [a.locations?.[0], b.locations?.[0]];
  const byPlace = (here?.line ?? 0) - (there?.line ?? 0) || (here?.column ?? 0) - (there?.column ?? 0);
  if (byPlace !== 0) return byPlace;
  const index = a.path?.findIndex((step, depth) => step !== b.path?.[depth]) ?? -1;
  const [left, right] = [a.path?.[index], b.path?.[index]];
  return typeof left === 'number' && typeof right === 'number' ? left - right : 0;
}

function withoutAbsent<T extends object>(parameters: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined)) as never;
}
