import type { GraphQLFormattedError } from 'graphql';

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
