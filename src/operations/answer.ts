import { unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { boundedErrors } from '../errors/errorBounds.js';
import { type ErrorCode, GatewayError } from '../errors/errors.js';
import { isBug, maskError } from '../errors/maskError.js';
import type { CodeCounts, OperationHooks } from './OperationRecord.js';

/** The result of an execution, as graphql-js gives it; its errors are not masked yet. */
export interface Result {
  /** Absent when the operation was not executed. */
  readonly data?: unknown;
  readonly errors?: readonly unknown[] | undefined;
}

/** The HTTP status of data with errors, for clients that take `application/graphql-response+json` (GraphQL over HTTP, Status). */
export const partialSuccess = 294;

/** An answer, ready to be written. */
export interface Answer {
  /** `mistake`: the document or its variables are wrong; `refusal`: the request is refused, whatever its document says. */
  readonly kind: 'result' | 'mistake' | 'refusal';
  /** HTTP status for clients that take `application/graphql-response+json`: 200, {@link partialSuccess} or a refusal's. */
  readonly status: number;
  /** With status 405: the allowed methods, as in the header Allow. */
  readonly allow?: string | undefined;
  readonly errors: readonly GraphQLFormattedError[];
  readonly text: string;
  readonly bytes: number;
}

/** What every answer is made with. */
export interface AnswerOptions {
  readonly requestId: string;
  /** Whether messages may reveal what the schema holds. */
  readonly openSchema: boolean;
  readonly onBug: OperationHooks['onBug'];
}

const noErrors: readonly GraphQLFormattedError[] = [];
const noCodes: CodeCounts = new Map();

/** Masks the errors of a result, bounds its size and writes it. */
export function answerOf(result: Result, maxBytes: number, options: AnswerOptions): Answer {
  const { data, errors } = result;
  if (data === undefined) return refusalOf('mistake', errors ?? [], options);
  const masked = errors && maskedErrors(errors, options);
  const answer = masked ? { errors: masked, data } : { data };
  if (leftAfter(answer, maxBytes) < 0) return tooLarge(maxBytes, options);
  const text = JSON.stringify(answer);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) return tooLarge(maxBytes, options);
  return { kind: 'result', status: masked ? partialSuccess : 200, errors: masked ?? noErrors, text, bytes };
}

/** The answer to a request of which nothing was executed. */
export function refusalOf(kind: 'mistake' | 'refusal', errors: readonly unknown[], options: AnswerOptions): Answer {
  const [first] = errors;
  const { listed, more } = boundedErrors(errors);
  const masked = [...maskedErrors(listed, options), ...maskedErrors(more, options)];
  const allow = first instanceof GatewayError ? first.allow : undefined;
  return { ...written({ errors: masked }), kind, status: statusOf(first), allow };
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
export function undecidedAsAWhole({ data, errors }: Result): GatewayError | undefined {
  if (errors === undefined) return undefined;
  const isUndecided = (one: unknown) => one instanceof GatewayError && one.code === 'AUTH_UNAVAILABLE';
  const undecided = errors.map(unwrapResolverError).find(isUndecided) as GatewayError | undefined;
  if (undecided === undefined) return undefined;
  const isEmpty = (value: unknown) => value === null || (Array.isArray(value) && value.every((one) => one === null));
  return Object.values(data ?? {}).every(isEmpty) ? undecided : undefined;
}

function tooLarge(maxBytes: number, options: AnswerOptions): Answer {
  const message = `The answer must have at most ${maxBytes} bytes`;
  const errors = maskedErrors([new GatewayError('BAD_USER_INPUT', message)], options);
  return { ...written({ errors, data: null }), kind: 'result', status: partialSuccess };
}

function written(answer: { readonly errors: Answer['errors']; readonly data?: null }) {
  const text = JSON.stringify(answer);
  return { errors: answer.errors, text, bytes: Buffer.byteLength(text) };
}

/** Sorts by position in the document, then by path, so that the order does not depend on which call failed first. */
function maskedErrors(errors: readonly unknown[], options: AnswerOptions): readonly GraphQLFormattedError[] {
  const masked = errors.map((error) => {
    if (isBug(error)) options.onBug(error, options.requestId);
    return maskError(error, options);
  });
  return masked.length > 1 ? masked.sort(inDocumentOrder) : masked;
}

/** The status of a refusal: 400 for a document that cannot be parsed, 422 for valid GraphQL that is not valid here. */
function statusOf(error: unknown): number {
  if (error instanceof GatewayError) return error.httpStatus ?? 422;
  if (isBug(error)) return 500;
  return error instanceof GraphQLError && error.extensions['code'] === 'GRAPHQL_PARSE_FAILED' ? 400 : 422;
}

function inDocumentOrder(a: GraphQLFormattedError, b: GraphQLFormattedError): number {
  const [here, there] = [a.locations?.[0], b.locations?.[0]];
  const byPlace = (here?.line ?? 0) - (there?.line ?? 0) || (here?.column ?? 0) - (there?.column ?? 0);
  if (byPlace !== 0) return byPlace;
  const index = a.path?.findIndex((step, depth) => step !== b.path?.[depth]) ?? -1;
  const [left, right] = [a.path?.[index] ?? '', b.path?.[index] ?? ''];
  return left === right ? 0 : left < right ? -1 : 1;
}

const [quotes, brackets, comma, colon] = [2, 2, 1, 1] as const; // their bytes in JSON

/**
 * An upper bound of what is left of `bytes` after `JSON.stringify` has written a value: a character counts as one byte.
 * Negative when the value cannot fit, and then returned early. Objects that occur several times take memory only when they
 * are written, so this comes first. Recursive: for bounded nesting only.
 */
export function leftAfter(value: unknown, bytes: number): number {
  if (typeof value === 'string') return bytes - quotes - value.length;
  if (typeof value !== 'object' || value === null) return bytes - JSON.stringify(value).length;
  if ('toJSON' in value && typeof value.toJSON === 'function') return leftAfter(value.toJSON(), bytes);
  let left = bytes - brackets + comma; // each member is taken with a comma, and the first needs none
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && left >= 0; index += 1) left = leftAfter(value[index], left) - comma;
    return value.length === 0 ? bytes - brackets : left;
  }
  let isEmpty = true;
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key];
    if (member === undefined) continue;
    isEmpty = false;
    left = leftAfter(member, left - quotes - key.length - colon) - comma;
    if (left < 0) break;
  }
  return isEmpty ? bytes - brackets : left;
}
