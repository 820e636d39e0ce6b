import { unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { boundedErrors } from '../errors/errorBounds.js';
import { GatewayError } from '../errors/errors.js';
import { isBug, type MaskOptions, maskError } from '../errors/maskError.js';
import { answerTooLarge, leftAfter } from './answerSize.js';
import type { OperationContext } from './OperationContext.js';
import type { OperationHooks } from './observeOperations.js';

/** The result of an execution; its errors are not masked yet. */
export interface Result {
  /** `data`; absent when the operation was not executed. */
  readonly data?: unknown;
  readonly errors?: readonly unknown[] | undefined;
  /** About how many milliseconds the event loop was busy with the execution after its first wait. */
  readonly busyMs?: number;
}

/** The HTTP status of data with errors, for clients that take `application/graphql-response+json` (GraphQL over HTTP, Status). */
export const partialSuccess = 294;

/** An answer, ready to be written. */
export interface Answer {
  /** HTTP status for clients that take `application/graphql-response+json`: 200, {@link partialSuccess} or a refusal's. */
  readonly status: number;
  /** With status 405: the allowed methods, as in the header Allow. */
  readonly allow: string | undefined;
  readonly errors: readonly GraphQLFormattedError[];
  readonly text: string;
  readonly bytes: number;
  /** True when nothing was executed, so that there is no `data`. */
  readonly isRefusal: boolean;
}

/** The different codes of an answer's errors. */
export function codesOf({ errors }: Answer): readonly string[] {
  return [...new Set(errors.map(({ extensions }) => String(extensions?.['code'])))];
}

const noErrors: readonly GraphQLFormattedError[] = [];

/** The one exit of all transports: errors are masked, logged and counted, and the size is bounded. */
export class Exit {
  constructor(
    private readonly hooks: OperationHooks,
    private readonly masking: Omit<MaskOptions, 'requestId'>,
  ) {}

  answer({ data, errors }: Result, context: OperationContext): Answer {
    if (data === undefined) return this.refusal(errors ?? [], context.requestId);
    const masked = errors && this.#masked(errors, context.requestId);
    const answer = masked ? { errors: masked, data } : { data };
    if (leftAfter(answer, context.maxAnswerBytes) < 0) return this.#tooLarge(context);
    const text = JSON.stringify(answer);
    const bytes = Buffer.byteLength(text);
    if (bytes > context.maxAnswerBytes) return this.#tooLarge(context);
    const status = masked ? partialSuccess : 200;
    return { status, allow: undefined, errors: masked ?? noErrors, text, bytes, isRefusal: false };
  }

  /** The answer to a request that was not executed. */
  refusal(errors: readonly unknown[], requestId: string): Answer {
    const [first] = errors;
    const { listed, more } = boundedErrors(errors);
    const masked = [...this.#masked(listed, requestId), ...this.#masked(more, requestId)];
    const allow = first instanceof GatewayError ? first.allow : undefined;
    return { ...written({ errors: masked }), status: statusOf(first), allow, isRefusal: true };
  }

  #tooLarge({ requestId, maxAnswerBytes }: OperationContext): Answer {
    const errors = this.#masked([answerTooLarge(maxAnswerBytes)], requestId);
    return { ...written({ errors, data: null }), status: partialSuccess, allow: undefined, isRefusal: false };
  }

  /** Sorts by position in the document, then by path, so that the order does not depend on which call failed first. */
  #masked(errors: readonly unknown[], requestId: string): readonly GraphQLFormattedError[] {
    const { onBug, onError } = this.hooks;
    const masked = errors.map((error) => {
      if (isBug(error)) onBug(error, requestId);
      const formatted = maskError(error, { ...this.masking, requestId });
      onError(formatted.extensions?.['code'] as never);
      return formatted;
    });
    return masked.length > 1 ? masked.sort(inDocumentOrder) : masked;
  }
}

/** The AUTH_UNAVAILABLE error of an operation that has one and no data at all: access could not be decided. */
export function undecidedAsAWhole(errors: readonly unknown[], { data }: Result): GatewayError | undefined {
  const isUndecided = (one: unknown) => one instanceof GatewayError && one.code === 'AUTH_UNAVAILABLE';
  const undecided = errors.map(unwrapResolverError).find(isUndecided) as GatewayError | undefined;
  if (undecided === undefined) return undefined;
  const isEmpty = (value: unknown) => value === null || (Array.isArray(value) && value.every((one) => one === null));
  return Object.values(data ?? {}).every(isEmpty) ? undecided : undefined;
}

function written(answer: { readonly errors: Answer['errors']; readonly data?: null }) {
  const text = JSON.stringify(answer);
  return { errors: answer.errors, text, bytes: Buffer.byteLength(text) };
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
