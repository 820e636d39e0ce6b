import { unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { errorCodes, GatewayError } from './errors.js';
import { aboutDocument, aboutSize, aboutSyntax } from './graphqlMessages.js';

interface MaskOptions {
  readonly requestId: string;
  /** Whether messages may reveal what the schema holds, and which GraphQL engine parses documents. */
  readonly openSchema: boolean;
}

/** When to try again at the earliest. */
const leastRetrySeconds = 1;
/** Most places in the document that one error names. */
const maxLocations = 10;
/** Longest text of an error, in characters. */
const maxText = 500;
/** Longest text of a cause in the log, in characters. */
const maxCause = 160;
const maxCauses = 3;
/** Most errors of an answer that are looked at for causes. */
const maxErrors = 20;

/**
 * Makes the error that a caller gets, on every transport. Errors with a code stay as they are. Errors of graphql-js about a
 * document lose the values that they quote, and the ends of long names. Everything else is a bug: it becomes
 * INTERNAL_SERVER_ERROR, and has to be logged.
 */
export function maskError(error: unknown, { requestId, openSchema }: MaskOptions): GraphQLFormattedError {
  const { locations, path } = error instanceof GraphQLError ? error.toJSON() : {};
  const { message, code, violations, retryAfterSeconds } = codedErrorFor(error, openSchema);
  const { retryable } = errorCodes[code];
  // Undefined members do not leave: `JSON.stringify` skips them.
  return {
    message: bounded(message),
    locations: locations?.slice(0, maxLocations),
    path,
    extensions: {
      code,
      retryable,
      retryAfterSeconds: retryable ? Math.max(leastRetrySeconds, retryAfterSeconds ?? 0) : undefined,
      requestId,
      violations: violations?.map((each) => ({ path: bounded(each.path), message: bounded(each.message) })),
    },
  } as GraphQLFormattedError;
}

/**
 * Why an operation failed, for the log: the different causes of its errors, without what a caller or the service sent. `known`:
 * causes found before.
 */
export function causesOf(errors: readonly unknown[], known: readonly string[] = []): readonly string[] {
  return [...new Set([...known, ...errors.slice(0, maxErrors).map(causeOf)])].slice(0, maxCauses);
}

function causeOf(error: unknown): string {
  const original = unwrapResolverError(error);
  const coded = codedErrorFor(error, true); // the log may name what the schema holds
  if (coded === bug) return original instanceof Error ? original.name : typeof original;
  if (coded.reason !== undefined) return coded.reason;
  // Without paths, and without names that the caller may have chosen: messages quote those, except the name of a variable.
  const [violation] = coded.violations ?? [];
  const message = violation === undefined ? coded.message : `a value ${violation.message}`;
  return message
    .replace(/"[^"]*"/g, '"…"')
    .replace(/^Variable \w+/, 'A variable')
    .slice(0, maxCause);
}

/** A GatewayError, or what takes the place of another error. */
type CodedError = Pick<GatewayError, 'message' | 'code' | 'retryAfterSeconds' | 'violations' | 'reason'>;

const bug: CodedError = {
  code: 'INTERNAL_SERVER_ERROR',
  message: 'Something went wrong in the gateway; its log has the request id',
};

function codedErrorFor(error: unknown, openSchema: boolean): CodedError {
  const original = unwrapResolverError(error);
  if (original instanceof GatewayError) return original;
  if (!(original instanceof GraphQLError) || original.originalError != null || original.path !== undefined) return bug;
  const { message, nodes = [] } = original;
  const tooLarge = aboutSize(message);
  if (tooLarge !== undefined) return { code: 'GRAPHQL_VALIDATION_FAILED', message: tooLarge };
  if (message.startsWith('Syntax Error')) {
    return {
      code: 'GRAPHQL_PARSE_FAILED',
      message: openSchema ? aboutSyntax(message) : 'The document cannot be parsed',
    };
  }
  if (nodes.length === 0) return bug; // graphql-js gives nodes to every mistake in a document
  // A null for an argument that must not be null is found only when the field is executed.
  const isOfField = error instanceof GraphQLError && error.path !== undefined;
  if (!isOfField) return { code: 'GRAPHQL_VALIDATION_FAILED', message: aboutDocument(original) };
  const plain = 'An argument does not have the expected type';
  return { code: 'BAD_USER_INPUT', message: openSchema ? aboutDocument(original) : plain };
}

/** Shortens the text of an error, which may quote any number of names of any length. */
function bounded(text: string): string {
  const short = text.replace(/(\w{100})\w+/g, '$1…');
  return short.length <= maxText ? short : `${short.slice(0, maxText - 1)}…`;
}
