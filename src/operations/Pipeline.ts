import { createSourceEventStream, execute } from 'graphql';
import type { Admission } from '../admission/Admission.js';
import type { Holder, Ledger } from '../admission/Ledger.js';
import type { Identity } from '../auth/identify.js';
import { causesOf } from '../errors/causesOf.js';
import type { GatewayError } from '../errors/errors.js';
import type { Trail } from '../observability/Trail.js';
import type { DocumentMemory } from './documents/DocumentMemory.js';
import type { OperationLimits } from './documents/documentReader.js';
import { type Answer, codesOf, Exit, type Result, undecidedAsAWhole } from './Exit.js';
import type { GraphQLRequest } from './GraphQLRequest.js';
import type { OperationContext, OperationFacts, RequestFacts } from './OperationContext.js';
import type { EndOfOperation, Transport } from './observeOperations.js';
import { ResultStream } from './ResultStream.js';
import { StreamSummary } from './StreamSummary.js';
import { refusing, type Subscription, type Work, WorkFinder, type WorkFinderOptions } from './WorkFinder.js';

export interface PipelineOptions extends Omit<WorkFinderOptions, 'noteWork'> {
  /** Makes the context of one execution. */
  readonly contextFor: (facts: OperationFacts, label: string, trail?: Trail) => OperationContext;
  readonly admission: Admission;
  readonly ledger: Ledger;
}

/** An operation that was admitted and prepared; nothing of it has run. */
export interface Operation {
  readonly facts: OperationFacts;
  readonly transport: Transport;
  readonly context: OperationContext;
  readonly work: Work;
  /** Bytes of memory that the request takes while its answer is awaited, or its stream is open. */
  readonly heldBytes: number;
}

/** Bytes of memory per character of a parsed request. */
const bytesPerCharacter = 16;
/** Requests of at most so many characters are not counted in the ledger: their number bounds the memory they take. */
const smallRequest = 1024;
/** Bytes of an answer that the operating system takes at once; a larger answer needs room in the ledger. */
const smallAnswer = 16_384;

/**
 * The path of every operation, on any transport: {@link admit} (may this caller ask now?), {@link prepare} (what is asked,
 * and is it valid?), {@link run} (perform it, and leave by the one exit).
 */
export class Pipeline {
  readonly limits: OperationLimits;
  readonly memory: DocumentMemory;
  readonly #exit: Exit;
  readonly #works: WorkFinder;

  constructor(private readonly options: PipelineOptions) {
    const { introspection, limits, hooks } = options;
    this.limits = limits;
    this.#exit = new Exit(hooks, { openSchema: introspection });
    this.#works = new WorkFinder({ ...options, noteWork: (holder, beganAt) => this.noteWork(holder, beganAt) });
    this.memory = this.#works.memory;
  }

  start(): Promise<void> {
    return this.#works.start();
  }

  stop(): Promise<void> {
    return this.#works.stop();
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

  /** Finds what answers a request: a plan, or else a valid document with variables that fit. Never throws. */
  prepare(asked: GraphQLRequest, facts: OperationFacts, transport: Transport): Operation {
    const { size = 0 } = asked;
    const heldBytes = size > smallRequest ? bytesPerCharacter * size : 0;
    const work = this.#countFields(this.#works.find(asked, facts, transport), facts);
    const context = this.options.contextFor(facts, work.label);
    return { facts, transport, context, work, heldBytes };
  }

  /** Counts the other root fields: {@link admit} has counted the first. */
  #countFields(work: Work, facts: OperationFacts): Work {
    try {
      if (work.rootFields > 1) this.options.admission.countMore(facts, work.rootFields - 1);
      return work;
    } catch (error) {
      return refusing(error);
    }
  }

  /**
   * Performs a query or a mutation, synchronously where possible.
   * @throws GatewayError when the request is refused or there is no room; Error for a bug. Rejects with the same.
   */
  run(operation: Operation): Answer | Promise<Answer> {
    const { hooks, ledger } = this.options;
    const { work, context, heldBytes } = operation;
    this.#refuseWithoutRoom(context.holder, heldBytes);
    const end = hooks.observe();
    const beganAt = performance.now();
    const performing = perform(work, context);
    hooks.onExecution(work.by === 'plan' ? 'plan' : 'apollo');
    if (!(performing instanceof Promise)) return this.#leave(operation, performing, end, beganAt);
    this.noteWork(context.holder, beganAt);
    const release = ledger.take('bytes', context.holder, heldBytes);
    return performing.finally(release).then((result) => this.#leave(operation, result, end, performance.now()));
  }

  /** Runs any operation: a subscription gives a stream of answers. Never rejects, and neither does the stream. */
  async runLive(operation: Operation): Promise<Answer | ResultStream> {
    const { work, facts, transport } = operation;
    try {
      return await (work.by === 'subscription' ? this.#subscribe(operation, work) : this.run(operation));
    } catch (error) {
      return this.refuse(error, facts, transport, work);
    }
  }

  async #subscribe(operation: Operation, subscription: Subscription): Promise<Answer | ResultStream> {
    const { hooks, ledger } = this.options;
    const { facts, transport, context, work } = operation;
    const { holder } = context;
    const release = ledger.take('bytes', holder, operation.heldBytes);
    const end = hooks.observe();
    const beganAt = performance.now();
    const subscribing = createSourceEventStream({ ...subscription.args, contextValue: context });
    this.noteWork(holder, beganAt);
    const source = await subscribing.catch((error) => {
      release();
      throw error;
    });
    if (!(Symbol.asyncIterator in source)) {
      release();
      return this.#leave(operation, source, end, performance.now());
    }
    end(work.label, work.type, 0);
    hooks.onRequest(transport, 'ok', []);
    const summary = new StreamSummary();
    return new ResultStream(source[Symbol.asyncIterator](), {
      expiresAt: facts.caller.expiresAt,
      execute: async (event) => {
        const result = await this.#executeEvent(operation, subscription, event);
        const answerBeganAt = performance.now();
        const answer = summary.note(this.#exit.answer(result, context), result.errors);
        this.noteWork(holder, answerBeganAt);
        return answer;
      },
      failed: (error) => summary.note(this.#exit.refusal([error], facts.requestId), [error]),
      onEnd: () => {
        release();
        const ended = { facts, transport, label: work.label, type: work.type, trail: context.trail };
        if (this.#isNotable(operation, summary.codes.length > 0)) hooks.onEnd({ ...ended, ...summary.end });
      },
    });
  }

  /** Executes the operation for one event, when it is the caller's turn. Work after a wait is charged beforehand. */
  async #executeEvent({ facts, context, work }: Operation, { args, busyMs }: Subscription, rootValue: unknown) {
    const { admission, contextFor } = this.options;
    await admission.turnOf(context.holder);
    const beganAt = performance.now();
    // Each event gets a context of its own, so that it does not see what an earlier event has read.
    const executing = execute({ ...args, contextValue: contextFor(facts, work.label, context.trail), rootValue });
    const laterMs = executing instanceof Promise ? busyMs : 0;
    admission.noteWork(context.holder, performance.now() - beganAt + laterMs);
    return executing;
  }

  /** Answers what was performed. `resumedAt`: when it began or, after a wait, went on. @throws GatewayError as {@link run} */
  #leave(operation: Operation, result: Result, end: EndOfOperation, resumedAt: number): Answer {
    const { admission } = this.options;
    const { work, context } = operation;
    const { busyMs = 0 } = result; // the execution's work after its first wait
    const undecided = result.errors && undecidedAsAWhole(result.errors, result);
    if (undecided !== undefined) {
      end(work.label, work.type, 1);
      admission.noteWork(context.holder, busyMs + performance.now() - resumedAt);
      throw undecided;
    }
    const answer = this.#exit.answer(result, context);
    end(work.label, work.type, answer.errors.length);
    // A mutation's answer is never refused for lack of room: the caller would send the mutation again.
    const needsRoom = operation.transport === 'http' && answer.bytes > smallAnswer && work.type !== 'mutation';
    if (needsRoom) this.#refuseWithoutRoom(context.holder, answer.bytes);
    this.#report(operation, result, answer);
    admission.noteWork(context.holder, busyMs + performance.now() - resumedAt);
    return answer;
  }

  /** Counts an answer, and logs it if it is notable. */
  #report(operation: Operation, result: Result, answer: Answer): void {
    const { work, facts, transport, context } = operation;
    const { hooks } = this.options;
    const { label, type } = work;
    const hasErrors = answer.errors.length > 0;
    hooks.onRequest(transport, hasErrors ? 'errors' : 'ok', answer.errors);
    if (!this.#isNotable(operation, hasErrors)) return;
    const outcome = answer.isRefusal ? 'refused' : hasErrors ? 'errors' : 'ok';
    const causes = hasErrors ? causesOf(result.errors ?? answer.errors) : [];
    const codes = hasErrors ? codesOf(answer) : [];
    hooks.onEnd({ facts, transport, outcome, label, type, codes, causes, trail: context.trail });
  }

  /** Whether an operation that ends now has a line in the log. */
  #isNotable({ work, facts, context }: Operation, hasErrors: boolean): boolean {
    if (hasErrors || work.type === 'mutation' || context.trail.tokenCalls > 0) return true;
    return performance.now() - facts.startedAt >= this.options.hooks.logSlowerThanMs;
  }

  /** Refuses a request: counts and logs the refusal, and returns the answer. */
  refuse(error: unknown, facts: RequestFacts, transport: Transport, work?: Work): Answer {
    const refusal = this.#exit.refusal([error], facts.requestId);
    const { hooks } = this.options;
    hooks.onRequest(transport, 'refused', refusal.errors);
    const [codes, causes] = [codesOf(refusal), causesOf([error])];
    hooks.onEnd({ facts, transport, outcome: 'refused', label: work?.label, type: work?.type, codes, causes });
    return refusal;
  }

  /** As {@link Admission.waitOfRefusal}. */
  waitOfRefusal(identity: Partial<Identity>): number {
    return this.options.admission.waitOfRefusal(identity);
  }

  /** Logs a connection that is refused, or that ends before it is authenticated. */
  turnAway(error: GatewayError, facts: RequestFacts, transport: Transport): void {
    this.options.hooks.onEnd({ facts, transport, outcome: 'refused', codes: [error.code], causes: causesOf([error]) });
  }

  /** Notes that the event loop was busy for `holder` since `beganAt` (of `performance.now()`). */
  noteWork(holder: Holder, beganAt: number): void {
    this.options.admission.noteWork(holder, performance.now() - beganAt);
  }

  #refuseWithoutRoom(holder: Holder, bytes: number): void {
    const refusal = bytes > 0 ? this.options.ledger.refusalOf('bytes', holder, bytes) : undefined;
    if (refusal !== undefined) throw refusal;
  }
}

function perform(work: Work, context: OperationContext): Result | Promise<Result> {
  switch (work.by) {
    case 'plan':
    case 'apollo':
      return work.perform(context);
    case 'refusal':
      if (work.isThrown) throw work.errors[0];
      return { errors: work.errors };
    case 'subscription':
      throw new Error('A subscription needs a stream');
    default:
      return work satisfies never;
  }
}
