import { unwrapResolverError } from '@apollo/server/errors';
import type { GraphQLFormattedError } from 'graphql';
import type { Holder, Places } from '../admission/Places.js';
import { type ErrorCode, failureCodes, GatewayError } from '../errors/errors.js';
import { causesOf, isBug, maskError } from '../errors/maskError.js';
import { type Answer, partialSuccess, type Result } from './answer.js';
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
const noErrors: readonly GraphQLFormattedError[] = [];
const noCodes: CodeCounts = new Map();
const noCauses: readonly never[] = [];

/** The part of an operation that its record tells; of a request that is none, what is known of it. */
type Recorded = Pick<Operation, 'transport' | 'label' | 'type' | 'name'> & {
  readonly facts: RequestFacts;
  readonly work?: Operation['work'];
  readonly context?: Operation['context'];
};

/** The one way out of all transports: an answer is written, and the operation's {@link OperationRecord} is told. */
export class Exit {
  constructor(private readonly options: ExitOptions) {}

  /** Answers what was performed. @throws GatewayError when access could not be decided, or there is no room for the answer */
  leave(operation: Operation, result: Result): Answer {
    const undecided = undecidedAsAWhole(result);
    if (undecided !== undefined) throw undecided;
    const answer = this.answer(operation, result);
    // A mutation's answer is never refused for lack of room: the caller would send the mutation again.
    const needsRoom = answer.bytes > smallAnswer && operation.type !== 'mutation';
    if (needsRoom) this.refuseWithoutRoom(operation.context.holder, answer.bytes);
    const causes = answer.errors.length > 0 ? causesOf(result.errors ?? answer.errors) : noCauses;
    this.record(operation, answer, codesIn(answer), causes);
    return answer;
  }

  /** Answers an operation that is refused, now or before it ran. */
  refuse(operation: Recorded, refused: Refused): Answer {
    const answer = this.refusal(refused, operation.facts);
    this.record(operation, answer, codesIn(answer), causesOf(refused.errors));
    return answer;
  }

  /** Answers a request that is no operation yet. */
  refuseRequest(error: unknown, facts: RequestFacts, transport: Transport): Answer {
    return this.refuse({ facts, transport, ...noOperation }, { kind: 'refusal', errors: [error] });
  }

  /** As {@link Operations.turnAway}. */
  turnAway(code: ErrorCode | undefined, cause: string, facts: RequestFacts, transport: Transport, status?: number) {
    const codes: CodeCounts = new Map(code === undefined ? [] : [[code, 1]]);
    this.options.hooks.onEnd({ facts, transport, ...noOperation, outcome: 'refused', status, codes, causes: [cause] });
  }

  /** One answer of an operation, which may have further ones. */
  answer({ context: { maxAnswerBytes }, facts }: Operation, { data, errors }: Result): Answer {
    if (data === undefined) return this.refusal({ kind: 'mistake', errors: errors ?? [] }, facts);
    const masked = errors && this.#masked(errors, facts);
    const answer = masked ? { errors: masked, data } : { data };
    if (leftAfter(answer, maxAnswerBytes) < 0) return this.#tooLarge(maxAnswerBytes, facts);
    const text = JSON.stringify(answer);
    const bytes = Buffer.byteLength(text);
    if (bytes > maxAnswerBytes) return this.#tooLarge(maxAnswerBytes, facts);
    return { kind: 'result', status: masked ? partialSuccess : 200, errors: masked ?? noErrors, text, bytes };
  }

  /** The answer to a request of which nothing was executed, and the last one of a stream that failed. */
  refusal({ kind, errors }: Refused, facts: RequestFacts): Answer {
    const [first] = errors;
    const masked = this.#masked(errors, facts);
    const { httpStatus = statusOf(masked[0]), allow }: Partial<GatewayError> =
      first instanceof GatewayError ? first : {};
    return { kind, status: httpStatus, allow, errors: masked, ...written({ errors: masked }) };
  }

  /** Tells how an operation ended. `events`: the number of answers of a stream. */
  record(
    { facts, transport, label, type, name, work, context }: Recorded,
    answer: Pick<Answer, 'kind' | 'status'>,
    codes: CodeCounts,
    causes: readonly string[],
    events?: number,
  ): void {
    this.options.hooks.onEnd({
      facts,
      transport,
      outcome: outcomeOf(answer.kind, codes),
      label,
      type,
      name,
      status: statusFor(facts, transport, answer),
      way: work?.way,
      codes,
      causes,
      trail: context?.trail,
      events,
    });
  }

  /** @throws GatewayError RATE_LIMITED */
  refuseWithoutRoom(holder: Holder, bytes: number): void {
    const refusal = bytes > 0 ? this.options.places.refusalOf('bytes', holder, bytes) : undefined;
    if (refusal !== undefined) throw refusal;
  }

  #tooLarge(maxBytes: number, facts: RequestFacts): Answer {
    const message = `The answer must have at most ${maxBytes} bytes`;
    const errors = this.#masked([new GatewayError('BAD_USER_INPUT', message)], facts);
    return { kind: 'result', status: partialSuccess, errors, ...written({ errors, data: null }) };
  }

  /** Sorts by position in the document, those without one last, then by path, so that the order does not depend on which call failed first. */
  #masked(errors: readonly unknown[], { requestId }: RequestFacts): readonly GraphQLFormattedError[] {
    const { openSchema, hooks } = this.options;
    const masked = errors.map((error) => {
      if (isBug(error)) hooks.onBug(error, requestId);
      return maskError(error, { requestId, openSchema });
    });
    return masked.length > 1 ? masked.sort(inDocumentOrder) : masked;
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

export function codesIn({ errors }: Pick<Answer, 'errors'>): CodeCounts {
  if (errors.length === 0) return noCodes;
  const counts = new Map<ErrorCode, number>();
  for (const { extensions } of errors) {
    const code = extensions?.['code'] as ErrorCode;
    counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  return counts;
}

/** The AUTH_UNAVAILABLE error of an operation that has one and no data at all: access could not be decided. */
function undecidedAsAWhole({ data, errors }: Result): GatewayError | undefined {
  const isUndecided = (one: unknown) => one instanceof GatewayError && one.code === 'AUTH_UNAVAILABLE';
  const undecided = errors?.map(unwrapResolverError).find(isUndecided) as GatewayError | undefined;
  if (undecided === undefined) return undefined;
  const values = Object.values(data ?? {}).flat(); // `_entities` is a list
  return values.every((value) => value === null) ? undecided : undefined;
}

function written(answer: { readonly errors: Answer['errors']; readonly data?: null }) {
  const text = JSON.stringify(answer);
  return { text, bytes: Buffer.byteLength(text) };
}

/** The status of a refusal: 400 for a document that cannot be parsed, 422 for valid GraphQL that is not valid here. */
function statusOf(error: GraphQLFormattedError | undefined): number {
  const code = error?.extensions?.['code'];
  return code === 'INTERNAL_SERVER_ERROR' ? 500 : code === 'GRAPHQL_PARSE_FAILED' ? 400 : 422;
}

function inDocumentOrder(a: GraphQLFormattedError, b: GraphQLFormattedError): number {
  const [here, there] = [a.locations?.[0], b.locations?.[0]];
  const byPlace = (here?.line ?? 1e9) - (there?.line ?? 1e9) || (here?.column ?? 0) - (there?.column ?? 0);
  if (byPlace !== 0) return byPlace;
  const index = a.path?.findIndex((step, depth) => step !== b.path?.[depth]) ?? -1;
  const [left, right] = [a.path?.[index] ?? '', b.path?.[index] ?? ''];
  return left === right ? 0 : left < right ? -1 : 1;
}

/**
 * At least what is left of `bytes` after `JSON.stringify` has written a value: only names and text are counted. Negative when
 * the value cannot fit, and then returned early. Objects that occur several times take memory only when they are written, so
 * this comes first. Recursive: for bounded nesting only.
 */
function leftAfter(value: unknown, bytes: number): number {
  if (typeof value === 'string') return bytes - value.length;
  if (typeof value !== 'object' || value === null) return bytes - 1;
  let left = bytes;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && left >= 0; index += 1) left = leftAfter(value[index], left);
    return left;
  }
  for (const key in value) {
    left = leftAfter((value as Record<string, unknown>)[key], left - key.length);
    if (left < 0) break;
  }
  return left;
}
