import type { Holder, Places } from '../admission/Places.js';
import { causesOf } from '../errors/causesOf.js';
import { type ErrorCode, failureCodes } from '../errors/errors.js';
import {
  type Answer,
  type AnswerOptions,
  answerOf,
  codesIn,
  type Result,
  refusalOf,
  undecidedAsAWhole,
} from './answer.js';
import type { Operation, Refused } from './Operation.js';
import type { RequestFacts } from './OperationContext.js';
import type { CodeCounts, OperationHooks, OperationRecord, Transport } from './OperationRecord.js';

export interface ExitOptions {
  readonly places: Places;
  readonly hooks: OperationHooks;
  /** Whether messages may reveal what the schema holds. */
  readonly openSchema: boolean;
}

/** Bytes of an answer that the operating system takes at once; a larger answer needs room in the places. */
const smallAnswer = 16_384;
const noOperation = { label: 'none', type: 'none' } as const;
const noCauses: readonly never[] = [];

/** The one way out of all transports: an answer is written, and the operation's {@link OperationRecord} is told. */
export class Exit {
  constructor(private readonly options: ExitOptions) {}

  /** Answers what was performed. @throws GatewayError when access could not be decided, or there is no room for the answer */
  leave(operation: Operation, result: Result): Answer {
    const { context, type } = operation;
    const undecided = undecidedAsAWhole(result);
    if (undecided !== undefined) throw undecided;
    const answer = this.answer(operation, result);
    // A mutation's answer is never refused for lack of room: the caller would send the mutation again.
    const needsRoom = answer.bytes > smallAnswer && type !== 'mutation';
    if (needsRoom) this.refuseWithoutRoom(context.holder, answer.bytes);
    const causes = answer.errors.length > 0 ? causesOf(result.errors ?? answer.errors) : noCauses;
    this.record(operation, answer, codesIn(answer), causes);
    return answer;
  }

  /** Answers an operation that is refused, now or before it ran. */
  refuse(operation: Operation, { kind, errors }: Refused): Answer {
    const answer = refusalOf(kind, errors, this.#optionsFor(operation.facts));
    this.record(operation, answer, codesIn(answer), causesOf(errors));
    return answer;
  }

  /** Answers a request that is no operation yet. */
  refuseRequest(error: unknown, facts: RequestFacts, transport: Transport): Answer {
    const answer = refusalOf('refusal', [error], this.#optionsFor(facts));
    const codes = codesIn(answer);
    const outcome = outcomeOf('refusal', codes);
    const status = statusFor(facts, transport, answer);
    this.options.hooks.onEnd({ facts, transport, ...noOperation, outcome, status, codes, causes: causesOf([error]) });
    return answer;
  }

  /** As {@link Operations.turnAway}. */
  turnAway(
    code: ErrorCode | undefined,
    cause: string,
    facts: RequestFacts,
    transport: Transport,
    status?: number,
  ): void {
    const codes: CodeCounts = new Map(code === undefined ? [] : [[code, 1]]);
    this.options.hooks.onEnd({ facts, transport, ...noOperation, outcome: 'refused', status, codes, causes: [cause] });
  }

  /** One answer of an operation, which may have further ones. */
  answer({ context, facts }: Operation, result: Result): Answer {
    return answerOf(result, context.maxAnswerBytes, this.#optionsFor(facts));
  }

  /** The last answer of a stream that failed. */
  lastAnswer({ facts }: Operation, error: unknown): Answer {
    return refusalOf('refusal', [error], this.#optionsFor(facts));
  }

  /** Tells how an operation ended. `events`: the number of answers of a stream. */
  record(
    { facts, transport, label, type, name, work: { way }, context: { trail } }: Operation,
    answer: Pick<Answer, 'kind' | 'status'>,
    codes: CodeCounts,
    causes: readonly string[],
    events?: number,
  ): void {
    const outcome = outcomeOf(answer.kind, codes);
    const status = statusFor(facts, transport, answer);
    this.options.hooks.onEnd({
      facts,
      transport,
      outcome,
      label,
      type,
      name,
      status,
      way,
      codes,
      causes,
      trail,
      events,
    });
  }

  /** @throws GatewayError RATE_LIMITED */
  refuseWithoutRoom(holder: Holder, bytes: number): void {
    const refusal = bytes > 0 ? this.options.places.refusalOf('bytes', holder, bytes) : undefined;
    if (refusal !== undefined) throw refusal;
  }

  #optionsFor({ requestId }: RequestFacts): AnswerOptions {
    const { openSchema, hooks } = this.options;
    return { requestId, openSchema, onBug: hooks.onBug };
  }
}

/** The HTTP status that an answer is sent with. */
function statusFor(facts: RequestFacts, transport: Transport, answer: Pick<Answer, 'kind' | 'status'>) {
  if (transport === 'ws') return undefined;
  const isPlain = answer.kind === 'result' && answer.status === 200;
  // What is no refusal is an event of a stream, which began with 200.
  return isPlain || (transport !== 'http' && answer.kind !== 'refusal') ? 200 : facts.statusOf?.(answer);
}

function outcomeOf(kind: Answer['kind'], codes: CodeCounts): OperationRecord['outcome'] {
  if (codes.size === 0) return 'ok';
  for (const code of codes.keys()) if (failureCodes.has(code)) return 'failed';
  return kind === 'result' ? 'errors' : 'refused';
}
