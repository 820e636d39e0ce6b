import { unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { boundedLocations, boundedText } from './errorBounds.js';
import { errorCodes, GatewayError } from './errors.js';
import { aboutDocument, aboutSize, aboutSyntax, misfit } from './graphqlMessages.js';

export interface MaskOptions {
  readonly requestId: string;
  /** Whether messages may reveal what the schema holds, and which GraphQL engine parses documents. */
  readonly openSchema: boolean;
}

/** When to try again, if nothing says how long a fault lasts. */
const usualRetrySeconds = 1;

/**
 * The one exit of errors, on every transport. Coded errors leave as they are. Errors of graphql-js about a document leave
 * without the values they quote and the ends of long names. Everything else becomes INTERNAL_SERVER_ERROR.
 */
export function maskError(error: unknown, options: MaskOptions): GraphQLFormattedError {
  const { locations, path } = error instanceof GraphQLError ? error.toJSON() : {};
  const { message, code, violations, ...face } = publicFace(error, options.openSchema);
  const { retryable } = errorCodes[code];
  const retryAfterSeconds = face.retryAfterSeconds ?? (retryable ? usualRetrySeconds : undefined);
  return {
    message: boundedText(message),
    ...(locations !== undefined && { locations: boundedLocations(locations) }),
    ...(path !== undefined && { path }),
    extensions: {
      code,
      retryable,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      requestId: options.requestId,
      ...(violations !== undefined && {
        violations: violations.map((each) => ({ path: boundedText(each.path), message: boundedText(each.message) })),
      }),
    },
  };
}

/** Whether neither a caller nor the service caused an error. It is then masked, and has to be logged. */
export function isBug(error: unknown): boolean {
  return publicFace(error, false).code === 'INTERNAL_SERVER_ERROR';
}

type PublicFace = Pick<GatewayError, 'message' | 'code' | 'retryAfterSeconds' | 'violations'>;

function publicFace(error: unknown, openSchema: boolean): PublicFace {
  const original = unwrapResolverError(error);
  if (original instanceof GatewayError) return original;
  if (!(original instanceof GraphQLError)) return bug;
  const { message } = original;
  const tooLarge = aboutSize(message);
  if (tooLarge !== undefined) return { code: 'GRAPHQL_VALIDATION_FAILED', message: tooLarge };
  const code = original.extensions['code'];
  if (code === undefined && isAboutTheDocument(original)) {
    // A null for an argument that must not be null is found only when the field is executed.
    const isOfField = error instanceof GraphQLError && error.path !== undefined;
    if (!isOfField) return { code: 'GRAPHQL_VALIDATION_FAILED', message: aboutDocument(original) };
    const plain = 'An argument does not have the expected type';
    return { code: 'BAD_USER_INPUT', message: openSchema ? aboutDocument(original) : plain };
  }
  switch (code) {
    case 'GRAPHQL_PARSE_FAILED':
      return { code, message: openSchema ? aboutSyntax(message) : 'The document cannot be parsed' };
    case 'GRAPHQL_VALIDATION_FAILED':
      return { code, message: aboutDocument(original) };
    case 'BAD_USER_INPUT':
      return { code, message: variableMessage(message) };
    default:
      return bug;
  }
}

const bug: PublicFace = {
  code: 'INTERNAL_SERVER_ERROR',
  message: 'Something went wrong in the gateway; its log has the request id',
};

/** graphql-js reports a document's mistakes without a code and without an original error. */
function isAboutTheDocument(error: GraphQLError): boolean {
  return error.originalError == null && error.path === undefined && (error.nodes?.length ?? 0) > 0;
}

function variableMessage(message: string): string {
  const name = /^Variable "\$([_A-Za-z][_0-9A-Za-z]*)"/.exec(message)?.[1];
  return `${name === undefined ? 'A variable' : `Variable ${name}`} ${misfit}`;
}
