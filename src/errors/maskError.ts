import { unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError, Kind } from 'graphql';
import { boundedLocations, boundedText } from './errorBounds.js';
import { errorCodes, GatewayError } from './errors.js';

export interface MaskOptions {
  readonly requestId: string;
  /** Whether messages may reveal what the schema holds, and which GraphQL engine parses documents. */
  readonly openSchema: boolean;
}

/** When to try again, if nothing says how long a fault lasts. */
const usualRetrySeconds = 1;

/** The message for an `operationName` that matches no operation, or that is missing although there are several. */
export const unknownOperation = 'operationName must name one of the operations in the document';

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
  const tooLarge = limitOfGraphqlJs(message);
  if (tooLarge !== undefined) return { code: 'GRAPHQL_VALIDATION_FAILED', message: tooLarge };
  const code = original.extensions['code'];
  if (code === undefined && isAboutTheDocument(original)) {
    // A null for an argument that must not be null is found only when the field is executed.
    const isOfField = error instanceof GraphQLError && error.path !== undefined;
    if (!isOfField) return { code: 'GRAPHQL_VALIDATION_FAILED', message: withoutValues(original) };
    const plain = 'An argument does not have the expected type';
    return { code: 'BAD_USER_INPUT', message: openSchema ? withoutValues(original) : plain };
  }
  switch (code) {
    case 'GRAPHQL_PARSE_FAILED':
      return { code, message: openSchema ? syntaxMessage(message) : 'The document cannot be parsed' };
    case 'GRAPHQL_VALIDATION_FAILED':
      return { code, message: withoutValues(original) };
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

/** Our message instead of one by which graphql-js says that a document is too large, without a code or a location. */
function limitOfGraphqlJs(message: string): string | undefined {
  const tokens = /^Syntax Error: Document contains more that (\d+) tokens/.exec(message);
  if (tokens) return `The document must have at most ${tokens[1]} tokens (MAX_TOKENS)`;
  if (message === 'Validation aborted.') return 'The document selects the same fields too often to be checked';
  if (message.startsWith('Too many validation errors')) return 'The document has too many mistakes to list';
  return undefined;
}

const token = String.raw`(?:<EOF>|"(?:[!$&()|:=@{}[\]]|\.\.\.)"|(?:Name|Int|Float|String|BlockString)\b)`;
const syntaxErrors = [
  new RegExp(`^Syntax Error: Expected (?:${token}|"[a-z]+"), found ${token}`),
  new RegExp(`^Syntax Error: Unexpected ${token}`),
  /^Syntax Error: (?:Unterminated string|Unexpected character)/,
  /^Syntax Error: Invalid (?:Unicode escape sequence|character escape sequence|character|number)/,
];

/** Keeps what graphql-js expected and the kind of token it found; the rest of its message quotes the document. */
function syntaxMessage(message: string): string {
  const known = syntaxErrors.map((form) => form.exec(message)?.[0]).find((text) => text !== undefined);
  return `${known ?? 'Syntax Error: the document cannot be read'}.`;
}

function variableMessage(message: string): string {
  const name = /^Variable "\$([_A-Za-z][_0-9A-Za-z]*)"/.exec(message)?.[1];
  return `${name === undefined ? 'A variable' : `Variable ${name}`} does not have the expected type`;
}

/** Messages about the document may quote names but not values; an error about a value is recognised by its node. */
function withoutValues({ message, nodes }: GraphQLError): string {
  const kind = nodes?.[0]?.kind;
  if (kind === Kind.OBJECT_FIELD || kind?.endsWith('Value')) return valueMessage(message);
  if (message.startsWith('There can be only one input field named')) return 'An input field is given twice.';
  return message;
}

/** Which part of a message about a value comes from the schema. Each form is anchored so that no value can imitate it. */
const valueMessages: readonly (readonly [form: RegExp, message: (fromSchema: string) => string])[] = [
  [/^(Field "[\w.]+" of required type "[\w![\]]+" was not provided\.)$/, (whole) => whole],
  [/^(Expected value of type "[\w![\]]+"|(?:\w+|Enum "\w+") cannot represent [\w -]+(?=:))/, (unfit) => `${unfit}.`],
  [/^Field [\s\S]* is not defined by type "(\w+)"/, (type) => `An input field is not defined by type "${type}".`],
  [/^Value [\s\S]* does not exist in "(\w+)" enum/, (name) => `A value does not exist in "${name}" enum.`],
];

function valueMessage(message: string): string {
  for (const [form, told] of valueMessages) {
    const fromSchema = form.exec(message)?.[1];
    if (fromSchema !== undefined) return told(fromSchema);
  }
  return 'A value does not have the expected type.';
}
