import { unwrapResolverError } from '@apollo/server/errors';
import type { GraphQLFormattedError } from 'graphql';
import type { Places } from '../admission/Places.js';
import { type ErrorCode, failureCodes, GatewayError } from '../errors/errors.js';
import { causesOf, isBug, maskError } from '../errors/maskError.js';
import {
  type Answer,
  type Operation,
  type OperationHooks,
  type OperationRecord,
  type Outcome,
  partialSuccess,
  type Refused,
  type RequestFacts,
  type Result,
  refusal,
  type Transport,
} from './Operation.js';

export interface ExitOptions {
  readonly places: Places;
  readonly maxAnswerBytes: number;
  readonly hooks: OperationHooks;
  /** Whether messages may reveal what the schema holds. */
  readonly openSchema: boolean;
}

/** Bytes of an answer that the operating system takes at once; a larger answer needs room in the places. */
const smallAnswer = 16_384;
const noErrors: readonly GraphQLFormattedError[] = [];
export const noCodes: OperationRecord['codes'] = new Map();
export const noCauses: readonly string[] = [];

/** The one way out of all transports: an answer is written, and the operation's record is told. */
export class Exit {
  constructor(private readonly options: ExitOptions) {}

  /** Answers what was performed. @throws GatewayError when access could not be decided, or there is no room for the answer */
  leave(operation: Operation, result: Result): Answer {
    const undecided = undecidedAsAWhole(result);
    if (undecided !== undefined) throw undecided;
    const answer = this.answer(operation, result);
    // A mutation's answer is never refused for lack of room: the caller would send the mutation again.
    const needsRoom = answer.bytes > smallAnswer && operation.type !== 'mutation';
    const noRoom = needsRoom
      ? this.options.places.refusalOf('bytes', operation.context.holder, answer.bytes)
      : undefined;
    if (noRoom !== undefined) throw noRoom;
    return this.end(operation, answer);
  }

  /** Answers an operation that is refused, now or before it ran, in place of any answer that was written. */
  refuse(record: OperationRecord, refused: Refused): Answer {
    record.codes = noCodes;
    record.causes = noCauses;
    return this.end(record, this.refusal(record, refused));
  }

  /** Answers a request that is no operation yet. */
  refuseRequest(error: unknown, facts: RequestFacts, transport: Transport): Answer {
    const refused = refusal(error);
    return this.refuse(recordOf(facts, transport, refused), refused);
  }

  /** As {@link Operations.turnAway}. */
  turnAway(code: ErrorCode | undefined, cause: string, facts: RequestFacts, transport: Transport, status?: number) {
    const codes = new Map(code === undefined ? [] : [[code, 1]]);
    const record = recordOf(facts, transport, { kind: 'refusal', errors: [] });
    this.options.hooks.onEnd({ ...record, codes, causes: [cause], status });
  }

  /** One answer of an operation, which may have further ones. */
  answer(operation: Operation, { data, errors }: Result): Answer {
    if (data === undefined) return this.refusal(operation, { kind: 'mistake', errors: errors ?? [] });
    const { maxAnswerBytes } = this.options;
    const masked = errors && this.#masked(errors, operation.facts);
    const answer = masked ? { errors: masked, data } : { data };
    const text = leftAfter(answer, maxAnswerBytes) < 0 ? undefined : JSON.stringify(answer);
    const bytes = text === undefined ? Number.POSITIVE_INFINITY : Buffer.byteLength(text);
    if (text === undefined || bytes > maxAnswerBytes) {
      const message = `The answer must have at most ${maxAnswerBytes} bytes`;
      return this.answer(operation, { data: null, errors: [new GatewayError('BAD_USER_INPUT', message)] });
    }
    if (masked) note(operation, errors, masked);
    return { kind: 'result', status: masked ? partialSuccess : 200, errors: masked ?? noErrors, text, bytes };
  }

  /** The answer to a request of which nothing was executed, and the last one of a stream that failed. */
  refusal(record: OperationRecord, { kind, errors }: Refused): Answer {
    const [first] = errors;
    const masked = this.#masked(errors, record.facts);
    note(record, errors, masked);
    const { httpStatus = statusOf(masked[0]), allow }: Partial<GatewayError> =
      first instanceof GatewayError ? first : {};
    const text = JSON.stringify({ errors: masked });
    return { kind, status: httpStatus, allow, errors: masked, text, bytes: Buffer.byteLength(text) };
  }

  /** Tells how an operation ended, by its last answer, which is returned. */
  end<Last extends Pick<Answer, 'kind' | 'status'>>(record: OperationRecord, answer: Last): Last {
    record.outcome = outcomeOf(answer.kind, record.codes);
    record.status = statusFor(record, answer);
    this.options.hooks.onEnd(record);
    return answer;
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

/** The record of a request that is no operation. */
function recordOf(facts: RequestFacts, transport: Transport, work: Refused): OperationRecord {
  const unknown = { label: 'none', type: 'none', name: undefined, context: undefined } as const;
  const ending = {
    codes: noCodes,
    causes: noCauses,
    outcome: 'refused',
    status: undefined,
    events: undefined,
  } as const;
  return { facts, transport, ...unknown, work, ...ending };
}

/** Adds the errors of an answer to the record; `masked`: as they leave. */
function note(record: OperationRecord, errors: readonly unknown[], masked: Answer['errors']): void {
  const codes = new Map(record.codes);
  for (const { extensions } of masked) {
    const code = extensions?.['code'] as ErrorCode;
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  record.codes = codes;
  record.causes = causesOf(errors, record.causes);
}

/** The HTTP status that an answer is sent with. */
function statusFor({ facts, transport }: OperationRecord, answer: Pick<Answer, 'kind' | 'status'>) {
  if (transport === 'ws') return undefined;
  const isPlain = answer.kind === 'result' && answer.status === 200;
  // What is no refusal is an event of a stream, which began with 200.
  return isPlain || (transport !== 'http' && answer.kind !== 'refusal') ? 200 : facts.statusOf?.(answer);
}

function outcomeOf(kind: Answer['kind'], codes: OperationRecord['codes']): Outcome {
  if (codes.size === 0) return 'ok';
  for (const code of codes.keys()) if (failureCodes.has(code)) return 'failed';
  return kind === 'result' ? 'errors' : 'refused';
}

/** The AUTH_UNAVAILABLE error of an operation that has one and no data at all: access could not be decided. */
function undecidedAsAWhole({ data, errors }: Result): GatewayError | undefined {
  const isUndecided = (one: unknown) => one instanceof GatewayError && one.code === 'AUTH_UNAVAILABLE';
  const undecided = errors?.map(unwrapResolverError).find(isUndecided) as GatewayError | undefined;
  if (undecided === undefined) return undefined;
  const values = Object.values(data ?? {}).flat(); // `_entities` is a list
  return values.every((value) => value === null) ? undecided : undefined;
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
