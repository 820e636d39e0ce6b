import type { ApolloServer } from '@apollo/server';
import { createSourceEventStream, type DocumentNode, execute, GraphQLError, type GraphQLSchema } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Admission } from '../admission/Admission.js';
import type { Holder, Ledger } from '../admission/Ledger.js';
import { holderOf } from '../auth/caller.js';
import type { Identity } from '../auth/identify.js';
import { causesOf } from '../errors/causesOf.js';
import { failureCodes, GatewayError } from '../errors/errors.js';
import type { Trail } from '../observability/Trail.js';
import { type Answer, answerOf, codesIn, type Exit, type Result, refusalOf, undecidedAsAWhole } from './answer.js';
import { createApolloServer, type Logger } from './executeByApollo.js';
import { badRequest, type GraphQLRequest } from './GraphQLRequest.js';
import { type CheckedOperation, type KnownOperation, KnownOperations } from './KnownOperations.js';
import type { OperationContext, OperationFacts, RequestFacts } from './OperationContext.js';
import type { CodeCounts, OperationHooks, OperationRecord, OperationType, Transport } from './OperationRecord.js';
import { ResultStream } from './ResultStream.js';
import type { OperationLimits } from './size.js';
import { type TrustedDocuments, withDocument } from './TrustedDocuments.js';

export interface OperationsOptions {
  readonly schema: GraphQLSchema;
  readonly limits: OperationLimits;
  readonly introspection: boolean;
  /** Undefined where any document may run. */
  readonly trustedDocuments: TrustedDocuments | undefined;
  /** Makes the context of one execution. */
  readonly contextFor: (facts: OperationFacts, label: string, trail?: Trail) => OperationContext;
  readonly admission: Admission;
  readonly ledger: Ledger;
  readonly hooks: OperationHooks;
  readonly log: Logger;
  /** Whether operations get plans. Default `on`; `off` is for tests. */
  readonly plans?: 'on' | 'off' | undefined;
}

/** An operation that was admitted; nothing of it has run. */
export interface Operation {
  readonly facts: OperationFacts;
  readonly transport: Transport;
  readonly label: string;
  readonly type: OperationType;
  readonly context: OperationContext;
  readonly request: GraphQLRequest;
  /** Why nothing will run. */
  readonly refused?: Refused | undefined;
  /** Undefined where it is refused. */
  readonly checked?: CheckedOperation | undefined;
}

interface Refused {
  /** See {@link Answer}. */
  readonly kind: 'mistake' | 'refusal';
  readonly errors: readonly unknown[];
}

/** Bytes of memory per character of a parsed request. */
const bytesPerCharacter = 16;
/** Requests of at most so many characters are not counted in the ledger: their number bounds the memory they take. */
const smallRequest = 1024;
/** Bytes of an answer that the operating system takes at once; a larger answer needs room in the ledger. */
const smallAnswer = 16_384;
/** Estimated milliseconds that a field takes after a wait: that time cannot be measured, because others run meanwhile. */
const laterFieldMs = 0.002;
/** Most request bodies that are kept parsed, and the longest of them in characters. */
const keptRequests = { max: 1000, longest: 2048 };
const noVariables = Object.freeze({});

/**
 * The path of every operation, on any transport: {@link admit} (may this caller ask now?), {@link prepare} (what is asked,
 * and is it valid?), {@link run} (perform it, and leave by the one exit). Each operation ends in one {@link OperationRecord}.
 */
export class Operations {
  readonly limits: OperationLimits;
  /** Queries by their body, so that one that comes again is not parsed. Mutations are not kept: they may hold personal data. */
  readonly requests = new LRUCache<string, GraphQLRequest>({ max: keptRequests.max });
  readonly #known: KnownOperations;
  readonly #apollo: ApolloServer<OperationContext>;

  constructor(private readonly options: OperationsOptions) {
    const { schema, limits, introspection, log, plans = 'on' } = options;
    this.limits = limits;
    this.#apollo = createApolloServer(schema, log);
    this.#known = new KnownOperations({ schema, limits, introspection, plans, apollo: this.#apollo });
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

  /** Counts one root field, awaits the caller's turn and calls `read`. @throws GatewayError RATE_LIMITED, or as `read` */
  admit<Read>({ caller, remoteAddress }: Identity, read: () => Read): Read | Promise<Awaited<Read>> {
    const turn = this.options.admission.admit(caller, remoteAddress);
    return turn === undefined ? read() : (turn.then(read) as Promise<Awaited<Read>>);
  }

  /** What is left of the caller's rate limit; undefined when there is no limit. */
  rateLimitOf(identity: Pick<Identity, 'caller' | 'remoteAddress'>) {
    return this.options.admission.limitOf(identity);
  }

  /** Finds the operation that a request asks for, and checks its variables. Never throws: it may be a refused one. */
  prepare(asked: GraphQLRequest, facts: OperationFacts, transport: Transport): Operation {
    const beganAt = performance.now();
    try {
      return this.#prepared(asked, facts, transport);
    } finally {
      this.noteWork(holderOf(facts.caller), beganAt);
    }
  }

  #prepared(asked: GraphQLRequest, facts: OperationFacts, transport: Transport): Operation {
    // A router that presents its secret writes its own documents, which no list has.
    const trusted = facts.fromRouter === true ? undefined : this.options.trustedDocuments;
    let request = asked;
    let known: KnownOperation | undefined;
    let checked: CheckedOperation | undefined;
    let refused: Refused | undefined;
    let kind: Refused['kind'] = 'refusal';
    try {
      request = withDocument(asked, trusted);
      kind = 'mistake';
      known = this.#find(request);
      if (transport === 'http') refuseOverPlainHttp(request.method, known.type);
      checked = known.check(request.variables ?? noVariables);
      kind = 'refusal';
      if (known.rootFields > 1) this.options.admission.countMore(facts, known.rootFields - 1); // `admit` counted the first
      if (trusted !== undefined && request === asked) trusted.report(asked.query ?? '', known.label, facts);
      if (known.isKept && known.type === 'query') this.#keep(asked);
    } catch (error) {
      refused = { kind, errors: mistakesOf(error) };
    }
    const { label, type } = known ?? noOperation;
    const context = this.options.contextFor(facts, label);
    return { facts, transport, label, type, context, request, refused, checked };
  }

  /** Performs a query or a mutation, synchronously where possible. Never throws: a refusal is an answer, too. */
  run(operation: Operation): Answer | Promise<Answer> {
    const { hooks, ledger } = this.options;
    const { context, checked } = operation;
    const { holder } = context;
    if (checked === undefined || operation.refused !== undefined) return this.#refuse(operation, operation.refused);
    const beganAt = performance.now();
    hooks.onBegin?.();
    try {
      this.#refuseWithoutRoom(holder, heldBytesOf(operation));
      const performing = checked.run(context);
      if (!(performing instanceof Promise)) {
        const answer = this.#leave(operation, performing);
        this.noteWork(holder, beganAt);
        return answer;
      }
      const release = ledger.take('bytes', holder, heldBytesOf(operation));
      const laterMs = checked.fields * laterFieldMs;
      this.options.admission.noteWork(holder, performance.now() - beganAt + laterMs);
      const left = performing.finally(release).then((result) => {
        const resumedAt = performance.now();
        const answer = this.#leave(operation, result);
        this.noteWork(holder, resumedAt);
        return answer;
      });
      return left.catch((error) => this.#refuse(operation, { kind: 'refusal', errors: [error] }));
    } catch (error) {
      return this.#refuse(operation, { kind: 'refusal', errors: [error] });
    }
  }

  /** Runs any operation: a subscription gives a stream of answers. Never rejects, and neither does the stream. */
  async runLive(operation: Operation): Promise<Answer | ResultStream> {
    const { type, refused } = operation;
    if (type !== 'subscription' || refused !== undefined) return this.run(operation);
    this.options.hooks.onBegin?.();
    try {
      return await this.#subscribe(operation);
    } catch (error) {
      return this.#refuse(operation, { kind: 'refusal', errors: [error] });
    }
  }

  /** Refuses a request that is no operation yet. Returns the answer. */
  refuse(error: unknown, facts: RequestFacts, transport: Transport): Answer {
    const answer = refusalOf('refusal', [error], this.#exitOf(facts));
    this.#end({ facts, transport, ...noOperation }, answer, causesOf([error]));
    return answer;
  }

  /** Records a connection that is refused or ends before it is authenticated, or a path that does not exist. */
  turnAway(codes: CodeCounts, cause: string, facts: RequestFacts, transport: Transport): void {
    this.options.hooks.onEnd({ facts, transport, ...noOperation, outcome: 'refused', codes, causes: [cause] });
  }

  /** As {@link Admission.waitOfRefusal}. */
  waitOfRefusal(identity: Partial<Identity>): number {
    return this.options.admission.waitOfRefusal(identity);
  }

  /** Notes that the event loop was busy for `holder` since `beganAt` (of `performance.now()`). */
  noteWork(holder: Holder, beganAt: number): void {
    this.options.admission.noteWork(holder, performance.now() - beganAt);
  }

  #find({ query, operationName }: GraphQLRequest): KnownOperation {
    // Apollo's own message for a hash alone, on which its clients send the text, some with the hash beside it.
    if (!query) throw badRequest('PersistedQueryNotSupported', 200);
    return this.#known.find(query, operationName);
  }

  #keep(asked: GraphQLRequest): void {
    const { body } = asked;
    if (body !== undefined && body.length <= keptRequests.longest) {
      this.requests.set(body, { ...asked, body: undefined, size: undefined });
    }
  }

  async #subscribe(operation: Operation): Promise<Answer | ResultStream> {
    const { schema } = this.options;
    const { facts, context, request, checked } = operation;
    const { holder } = context;
    const document = checked?.document as DocumentNode;
    const release = this.options.ledger.take('bytes', holder, heldBytesOf(operation));
    const { operationName, variables = noVariables } = request;
    const args = { schema, document, operationName, variableValues: variables };
    const beganAt = performance.now();
    const subscribing = createSourceEventStream({ ...args, contextValue: context });
    this.noteWork(holder, beganAt);
    const source = await subscribing.catch((error) => {
      release();
      throw error;
    });
    if (!(Symbol.asyncIterator in source)) {
      release();
      return this.#leave(operation, source);
    }
    const sum = new StreamSum();
    return new ResultStream(source[Symbol.asyncIterator](), {
      expiresAt: facts.caller.expiresAt,
      execute: async (event) => {
        const result = await this.#executeEvent(operation, args, event);
        const answerBeganAt = performance.now();
        const answer = sum.add(answerOf(result, context.maxAnswerBytes, this.#exitOf(facts)), result.errors);
        this.noteWork(holder, answerBeganAt);
        return answer;
      },
      failed: (error) => sum.add(refusalOf('refusal', [error], this.#exitOf(facts)), [error]),
      onEnd: () => {
        release();
        const { codes, causes, events } = sum;
        this.#record(operation, 'result', codes, [...causes], events);
      },
    });
  }

  /** Executes the operation for one event, when it is the caller's turn. Work after a wait is charged beforehand. */
  async #executeEvent({ facts, context, label, checked }: Operation, args: ExecuteArgs, rootValue: unknown) {
    const { admission, contextFor } = this.options;
    await admission.turnOf(context.holder);
    const beganAt = performance.now();
    // Each event gets a context of its own, so that it does not see what an earlier event has read.
    const executing = execute({ ...args, contextValue: contextFor(facts, label, context.trail), rootValue });
    const laterMs = executing instanceof Promise ? (checked?.fields ?? 0) * laterFieldMs : 0;
    admission.noteWork(context.holder, performance.now() - beganAt + laterMs);
    return executing;
  }

  /** Answers what was performed. @throws GatewayError when access could not be decided, or there is no room for the answer */
  #leave(operation: Operation, result: Result): Answer {
    const { context, transport, type, facts } = operation;
    const undecided = undecidedAsAWhole(result);
    if (undecided !== undefined) throw undecided;
    const answer = answerOf(result, context.maxAnswerBytes, this.#exitOf(facts));
    // A mutation's answer is never refused for lack of room: the caller would send the mutation again.
    const needsRoom = transport === 'http' && answer.bytes > smallAnswer && type !== 'mutation';
    if (needsRoom) this.#refuseWithoutRoom(context.holder, answer.bytes);
    this.#end(operation, answer, answer.errors.length > 0 ? causesOf(result.errors ?? answer.errors) : noCauses);
    return answer;
  }

  #refuse(operation: Operation, { kind, errors }: Refused = { kind: 'refusal', errors: [] }): Answer {
    const answer = refusalOf(kind, errors, this.#exitOf(operation.facts));
    this.#end(operation, answer, causesOf(errors));
    return answer;
  }

  #end(ended: Ended, answer: Answer, causes: readonly string[]): void {
    this.#record(ended, answer.kind, codesIn(answer), causes);
  }

  #record(
    { facts, transport, label, type, context, checked }: Ended,
    kind: Answer['kind'],
    codes: CodeCounts,
    causes: readonly string[],
    events?: number,
  ): void {
    const way = checked?.way;
    const trail = context?.trail;
    const outcome = outcomeOf(kind, codes);
    this.options.hooks.onEnd({ facts, transport, outcome, label, type, way, codes, causes, trail, events });
  }

  #exitOf({ requestId }: RequestFacts): Exit {
    const { introspection: openSchema, hooks } = this.options;
    return { requestId, openSchema, onBug: hooks.onBug };
  }

  #refuseWithoutRoom(holder: Holder, bytes: number): void {
    const refusal = bytes > 0 ? this.options.ledger.refusalOf('bytes', holder, bytes) : undefined;
    if (refusal !== undefined) throw refusal;
  }
}

type ExecuteArgs = Omit<Parameters<typeof execute>[0], 'contextValue' | 'rootValue'>;
type Ended = Pick<OperationRecord, 'facts' | 'transport' | 'label' | 'type'> &
  Partial<Pick<Operation, 'context' | 'checked'>>;

const noOperation = { label: 'none', type: 'none' } as const;
const noCauses: readonly never[] = [];

/** The codes and causes of a stream's answers, and their number. */
class StreamSum {
  events = 0;
  readonly codes = new Map<Parameters<CodeCounts['get']>[0], number>();
  readonly causes = new Set<string>();

  /** Adds an answer and returns it. `errors`: the answer's errors before they were masked. */
  add(answer: Answer, errors: readonly unknown[] | undefined): Answer {
    this.events += 1;
    if (errors === undefined) return answer;
    for (const [code, count] of codesIn(answer)) this.codes.set(code, (this.codes.get(code) ?? 0) + count);
    for (const cause of causesOf(errors)) if (this.causes.size < 3) this.causes.add(cause);
    return answer;
  }
}

function outcomeOf(kind: Answer['kind'], codes: CodeCounts): OperationRecord['outcome'] {
  if (codes.size === 0) return 'ok';
  for (const code of codes.keys()) if (failureCodes.has(code)) return 'failed';
  return kind === 'result' ? 'errors' : 'refused';
}

/** Bytes of memory that a request takes while its answer is awaited, or its stream is open. */
function heldBytesOf({ request: { size = 0 } }: Operation): number {
  return size > smallRequest ? bytesPerCharacter * size : 0;
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

function refuseOverPlainHttp(method: GraphQLRequest['method'], type: OperationType): void {
  if (method === 'GET' && type !== 'query') {
    throw badRequest(`GET requests only support query operations, not ${type} operations`, 405, { allow: 'POST' });
  }
  const another = 'use a WebSocket on this path, or server-sent events on /graphql/stream';
  if (type === 'subscription') throw badRequest(`A subscription needs a stream: ${another}`);
}
