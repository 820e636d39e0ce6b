import { unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { type ErrorCode, failureCodes, GatewayError } from '../errors/errors.js';
import { causesOf, maskError } from '../errors/maskError.js';
import { bytesLeftAfter } from '../process/json.js';
import {
  type Answer,
  type AnswerHead,
  noCauses,
  noCodes,
  type Operation,
  type OperationRecord,
  type OperationsOptions,
  type Outcome,
  partialSuccess,
  type Result,
} from './Operation.js';

/** Bytes of an answer that the operating system takes at once; a larger answer needs room in the places. */
export const smallAnswer = 16_384;

/** The one way out for every transport: makes the text of answers, and reports each operation's record at its end. */
export class Exit {
  constructor(private readonly options: OperationsOptions) {}

  /** Answers an operation that ran. @throws GatewayError when all of it was refused, or there is no room for the answer */
  leave(operation: Operation, result: Result): Answer {
    const refusal = refusalAsAWhole(operation, result);
    if (refusal !== undefined) throw refusal;
    let answer = this.answer(operation, result);
    // A mutation's answer is never refused for lack of room: the caller would send the mutation again.
    if (answer.bytes > smallAnswer && operation.type !== 'mutation') {
      answer = { ...answer, release: this.options.places.take('bytes', operation.context.holder, answer.bytes) };
    }
    this.end(operation, answer);
    return answer;
  }

  /** Whether there is room for an answer that is written at once. */
  hasRoom({ context }: Operation, { bytes }: Answer): boolean {
    return bytes <= smallAnswer || this.options.places.hasRoom('bytes', context.holder, bytes);
  }

  /** Answers a refused request or operation, also in place of an answer for which there was no room. */
  refuse(record: OperationRecord, error: unknown): Answer {
    record.codes = noCodes;
    record.causes = noCauses;
    const answer = this.answerOfErrors(record, mistakesOf(error));
    this.end(record, answer);
    return answer;
  }

  /** One answer of an operation, which may have further ones. */
  answer(operation: Operation, { data, errors }: Result): Answer {
    if (data === undefined) return this.answerOfErrors(operation, errors ?? []);
    const { answerBytes } = this.options.config;
    const masked = errors && this.#masked(errors, operation);
    const answer = { errors: masked, data }; // `JSON.stringify` skips `errors` where there are none
    const text = bytesLeftAfter(answer, answerBytes) < 0 ? '' : JSON.stringify(answer);
    const bytes = Buffer.byteLength(text);
    if (text === '' || bytes > answerBytes) {
      const message = `The answer must have at most ${answerBytes} bytes`;
      return this.answer(operation, { data: null, errors: [new GatewayError('BAD_USER_INPUT', message)] });
    }
    return { kind: 'result', status: masked ? partialSuccess : 200, errors: masked ?? [], text, bytes };
  }

  /** The answer to a request of which nothing was executed, and the last one of a stream that failed. */
  answerOfErrors(record: OperationRecord, errors: readonly unknown[]): Answer {
    const [first] = errors;
    const masked = this.#masked(errors, record);
    const httpStatus = first instanceof GatewayError ? first.httpStatus : undefined;
    const status = httpStatus ?? usualStatusOf(masked[0]);
    const kind = record.hasDocument && httpStatus === undefined && status !== 500 ? 'mistake' : 'refusal';
    const text = JSON.stringify({ errors: masked });
    return { kind, status, errors: masked, text, bytes: Buffer.byteLength(text) };
  }

  /** Reports how an operation ended, judged by its last answer. */
  end(record: OperationRecord, answer: AnswerHead): void {
    record.release?.();
    record.outcome = outcomeOf(answer.kind, record.codes);
    record.status = sentStatus(record, answer);
    this.options.onEnd(record);
  }

  /** The errors as they leave. Adds them to the record. */
  #masked(errors: readonly unknown[], record: OperationRecord): readonly GraphQLFormattedError[] {
    const { config, log } = this.options;
    const { requestId } = record.facts;
    const codes = new Map(record.codes);
    record.codes = codes;
    record.causes = causesOf(errors, record.causes);
    return errors.map((error) => {
      const masked = maskError(error, { requestId, openSchema: config.INTROSPECTION });
      const code = masked.extensions?.['code'] as ErrorCode;
      codes.set(code, (codes.get(code) ?? 0) + 1);
      if (code === 'INTERNAL_SERVER_ERROR') log.error({ requestId, err: error }, 'a bug of the gateway');
      return masked;
    });
  }
}

/** The errors to answer. Documents are walked recursively: if the stack overflows, the document is nested too deeply. */
function mistakesOf(error: unknown): readonly unknown[] {
  const mistakes: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  if (!mistakes.some(isOverflow)) return mistakes;
  return [new GatewayError('GRAPHQL_VALIDATION_FAILED', 'The document is nested too deeply')];
}

function isOverflow(error: unknown): boolean {
  const cause = error instanceof GraphQLError ? error.originalError : error;
  return cause instanceof RangeError && cause.message === 'Maximum call stack size exceeded';
}

/** The HTTP status that an answer is sent with; undefined on a socket. */
function sentStatus({ facts, transport }: OperationRecord, answer: AnswerHead): number | undefined {
  if (transport === 'ws') return undefined;
  // On a stream, any answer but a refusal comes after the headers, which had the status 200.
  return transport !== 'http' && answer.kind !== 'refusal' ? 200 : facts.statusOf?.(answer);
}

function outcomeOf(kind: Answer['kind'], codes: OperationRecord['codes']): Outcome {
  if (codes.size === 0) return 'ok';
  for (const code of codes.keys()) if (failureCodes.has(code)) return 'failed';
  return kind === 'result' ? 'errors' : 'refused';
}

/**
 * The first error of an operation that has no data at all, when all its errors have a status of their own, as RATE_LIMITED and
 * AUTH_UNAVAILABLE do. Not of a mutation with several fields, of which one may have been carried out.
 */
function refusalAsAWhole({ type, known }: Operation, { data, errors }: Result): GatewayError | undefined {
  if (errors === undefined || (type === 'mutation' && known.rootFields > 1)) return undefined;
  const originals: unknown[] = errors.map(unwrapResolverError);
  if (!originals.every(isRefusal)) return undefined;
  const values = Object.values(data ?? {}).flat(); // `_entities` is a list
  return values.every((value) => value === null) ? originals[0] : undefined;
}

const isRefusal = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && error.httpStatus !== undefined;

/** The status of a refusal whose error names none: 400 for a document that cannot be parsed, 500 for a bug, or 422. */
function usualStatusOf(error: GraphQLFormattedError | undefined): number {
  const code = error?.extensions?.['code'];
  if (code === 'INTERNAL_SERVER_ERROR') return 500;
  return code === 'GRAPHQL_PARSE_FAILED' ? 400 : 422;
}
