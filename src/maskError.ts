import { unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { type ErrorCode, errorCodes, GatewayError, type Violation } from './errors.js';

export interface MaskOptions {
  readonly requestId: string;
  /** Whether messages may name fields and types the caller did not (suggestions). */
  readonly suggestions: boolean;
}

/**
 * The one exit of errors, on every transport: only coded errors leave as they are, anything else becomes
 * INTERNAL_SERVER_ERROR. What graphql-js says of a document is kept, without the values it quotes.
 */
export function maskError(error: unknown, options: MaskOptions): GraphQLFormattedError {
  const { locations, path } = error instanceof GraphQLError ? error.toJSON() : {};
  const { message, code, retryAfterSeconds, violations } = publicFace(error, options.suggestions);
  return {
    message,
    ...(locations !== undefined && { locations }),
    ...(path !== undefined && { path }),
    extensions: {
      code,
      retryable: errorCodes[code].retryable,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      requestId: options.requestId,
      ...(violations !== undefined && { violations }),
    },
  };
}

/** Whether an error is nothing a caller or the service caused: it is masked, and has to be logged. */
export function isBug(error: unknown): boolean {
  return publicFace(error, false).code === 'INTERNAL_SERVER_ERROR';
}

interface PublicFace {
  readonly message: string;
  readonly code: ErrorCode;
  readonly retryAfterSeconds?: number | undefined;
  readonly violations?: readonly Violation[] | undefined;
}

function publicFace(error: unknown, suggestions: boolean): PublicFace {
  const original = unwrapResolverError(error);
  if (original instanceof GatewayError) return original;
  const code = original instanceof GraphQLError ? original.extensions['code'] : undefined;
  const words = original instanceof GraphQLError ? limitOfGraphqlJs(original) : undefined;
  if (words !== undefined) return { code: 'GRAPHQL_VALIDATION_FAILED', message: words };
  if (original instanceof GraphQLError && code === undefined && isAboutTheDocument(original)) {
    return { code: 'GRAPHQL_VALIDATION_FAILED', message: withoutValues(original, suggestions) };
  }
  if (original instanceof GraphQLError) {
    switch (code) {
      case 'GRAPHQL_PARSE_FAILED':
      case 'GRAPHQL_VALIDATION_FAILED':
      case 'BAD_USER_INPUT':
        return { code, message: withoutValues(original, suggestions) };
      // Apollo's refusals of a request: their texts are its own
      case 'BAD_REQUEST':
      case 'OPERATION_RESOLUTION_FAILURE':
      case 'PERSISTED_QUERY_NOT_FOUND':
      case 'PERSISTED_QUERY_NOT_SUPPORTED':
        return { code: 'BAD_USER_INPUT', message: original.message };
    }
  }
  return { code: 'INTERNAL_SERVER_ERROR', message: 'Something went wrong in the gateway; its log has the request id' };
}

/** graphql-js reports a document's mistakes without a code and without an original error. */
function isAboutTheDocument(error: GraphQLError): boolean {
  return error.originalError == null && error.path === undefined && (error.nodes?.length ?? 0) > 0;
}

/** What graphql-js says, without a code and a place, when a document is too large for it; in words that name the setting. */
function limitOfGraphqlJs({ message }: GraphQLError): string | undefined {
  const tokens = /^Syntax Error: Document contains more that (\d+) tokens/.exec(message);
  if (tokens) return `The document must have at most ${tokens[1]} tokens (MAX_TOKENS)`;
  if (message === 'Validation aborted.') return 'The document selects the same fields too often to be checked';
  if (message.startsWith('Too many validation errors')) return 'The document has too many mistakes to list';
  return undefined;
}

/** Literals that graphql-js quotes: those of a syntax error, block strings, and values after "found" or "invalid value". */
function withoutValues({ message }: GraphQLError, suggestions: boolean): string {
  const quoted = message
    .replace(/"""[\s\S]*"""/g, '"""…"""')
    .replace(/\b(BlockString|String|Int|Float) "[\s\S]*"/g, '$1')
    .replace(/(found|invalid value|value:) (?!Name|\$|<EOF>)(?:"[\s\S]*"|[[{][\s\S]*[\]}]|[^\s"]+)/g, '$1 …');
  return suggestions ? quoted : quoted.replace(/ Did you mean [\s\S]*$/, '');
}
