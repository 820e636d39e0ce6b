import type { ASTNode, GraphQLError } from 'graphql';

// graphql-js quotes values in its messages, but callers may only be told what comes from the schema. Each pattern is anchored,
// and takes the last text that looks like graphql-js' own, so that no quoted value can imitate it.

/** Said about a value where nothing more may be revealed. */
export const misfit = 'does not have the expected type';

/** Messages of graphql-js about a value, and what we say instead, after the place of the value. */
const aboutValues: readonly (readonly [form: RegExp, replacement: string])[] = [
  [
    /^Field "(?:\w+\.)?(\w+)" of required type "([\w![\]]+)" was not provided\.$/,
    'is missing its field $1: expected $2',
  ],
  [
    /^Field [\s\S]* is not defined by type "(\w+)"(?:(\. Did you mean [\w" ,]+\?)|\.)$/,
    'has a field that $1 does not define$2',
  ],
  [
    /^Expected (?:non-nullable type|value of type) "([\w![\]]+)"(?: not to be null|, found null)\.$/,
    'must not be null: expected $1',
  ],
  [/^Expected (?:value of )?type "([\w![\]]+)"[\s\S]*$/, `${misfit}: expected $1`],
  [/^(Int|Float|String|Boolean|ID|JSONObject) cannot represent [\s\S]*$/, `${misfit}: expected $1`],
];

/** Our text for a message of graphql-js about a value. It follows the value's place. */
export function aboutValue(message: string): string {
  const [form, replacement] = aboutValues.find(([known]) => known.test(message)) ?? [/^[\s\S]*$/, misfit];
  return message.replace(form, replacement);
}

/**
 * Our text for an error about a document. It may quote names, but no values: an error about a value is recognized by its
 * node.
 */
export function aboutDocument({ message, nodes }: GraphQLError): string {
  const node = nodes?.[0];
  if (node?.kind.endsWith('Value')) return `${placeOf(node)} ${aboutValue(message)}`;
  if (message.startsWith('There can be only one input field named')) return 'An input field is given twice.';
  return message;
}

/** The variable, or the argument or input field of the schema, that has the value or the list that it is in. */
function placeOf({ loc }: ASTNode): string {
  let token = loc?.startToken.prev;
  for (let depth = 0; token && (depth > 0 || token.kind !== ':'); token = token.prev) {
    if (token.kind === ']' || token.kind === '}') depth += 1;
    if (token.kind === '[' || token.kind === '{') depth = Math.max(0, depth - 1);
  }
  const name = token?.prev;
  return `${name?.prev?.kind === '$' ? 'Variable ' : ''}${name?.value ?? 'A value'}`;
}

/** Our message for a document that is too large, which graphql-js reports without a code or a location. */
export function aboutSize(message: string): string | undefined {
  const tokens = /^Syntax Error: Document contains more that (\d+) tokens/.exec(message);
  if (tokens) return `The document must have at most ${tokens[1]} tokens (MAX_TOKENS)`;
  if (message === 'Validation aborted.') return 'The document selects the same fields too often to be checked';
  if (message.startsWith('Too many validation errors')) return 'The document has more mistakes than these';
  return undefined;
}

const token = String.raw`(?:<EOF>|"(?:[!$&()|:=@{}[\]]|\.\.\.)"|(?:Name|Int|Float|String|BlockString)\b)`;
const syntaxError = new RegExp(
  `^Syntax Error: (?:Expected (?:${token}|"[a-z]+"), found ${token}|Unexpected (?:${token}|character)|Unterminated string` +
    `|Unexpected single quote character \\('\\), did you mean to use a double quote \\("\\)` +
    '|Invalid (?:Unicode escape sequence|character escape sequence|character|number))',
);

/** What graphql-js expected and the kind of token it found; the rest of its message quotes the document. */
export function aboutSyntax(message: string): string {
  return `${syntaxError.exec(message)?.[0] ?? 'Syntax Error: the document cannot be read'}.`;
}
