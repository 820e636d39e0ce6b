import { type GraphQLError, Kind } from 'graphql';

// graphql-js quotes values in its messages. What may be told is what comes from the schema. Each form is anchored, and takes
// the last text that looks like graphql-js' own, so that no value can imitate it.

/** What is wrong with a value, where its kind is all that may be told. */
export const misfit = 'does not have the expected type';

const suggestion = String.raw`(?: (Did you mean [\w" ,]+\?))?`;
const unknownField = new RegExp(String.raw`^Field [\s\S]* is not defined by type "(\w+)"\.${suggestion}$`);
const unknownEnum = new RegExp(String.raw`^Value [\s\S]* does not exist in "(\w+)" enum\.${suggestion}$`);
const missingField = /^Field "(?:\w+\.)?(\w+)" of required type "([\w![\]]+)" was not provided\.$/;
const wrongType = /^(Expected value of type "[\w![\]]+"|(?:\w+|Enum "\w+") cannot represent [\w -]+(?=:))/;

/** A message of graphql-js about a part of a variable's value, to follow the part's path. */
export function aboutInput(message: string): string {
  const absent = missingField.exec(message);
  if (absent) return `is missing its field ${absent[1]}: expected ${absent[2]}`;
  const unknown = unknownField.exec(message);
  if (unknown) return `has a field that ${unknown[1]} does not define${unknown[2] ? `. ${unknown[2]}` : ''}`;
  const name = unknownEnum.exec(message);
  if (name) return `is not a value of ${name[1]}${name[2] ? `. ${name[2]}` : ''}`;
  const nonNull = /^Expected non-nullable type "([\w![\]]+)" not to be null\.$/.exec(message);
  if (nonNull) return `must not be null: expected ${nonNull[1]}`;
  const type =
    /^Expected type "([\w![\]]+)"/.exec(message)?.[1] ??
    /^(Int|Float|String|Boolean|ID) cannot represent /.exec(message)?.[1];
  return type === undefined ? misfit : `${misfit}: expected ${type}`;
}

/** A message of graphql-js about a document, which may quote names but not values. An error about a value names its node. */
export function aboutDocument(error: GraphQLError): string {
  const { message, nodes } = error;
  const kind = nodes?.[0]?.kind;
  if (kind === Kind.OBJECT_FIELD || kind?.endsWith('Value')) return placeOf(error) + aboutLiteral(message);
  if (message.startsWith('There can be only one input field named')) return 'An input field is given twice.';
  return message;
}

function aboutLiteral(message: string): string {
  if (missingField.test(message)) return message;
  const fitting = wrongType.exec(message)?.[1];
  if (fitting !== undefined) return `${fitting}.`;
  const [, type, instead = ''] = unknownField.exec(message) ?? [];
  if (type !== undefined) return `An input field is not defined by type "${type}". ${instead}`.trimEnd();
  const [, name, meant = ''] = unknownEnum.exec(message) ?? [];
  return name === undefined
    ? 'A value does not have the expected type.'
    : `A value does not exist in "${name}" enum. ${meant}`.trimEnd();
}

/** The name of the argument or input field that a value was given to, which is of the schema: `maxAgeSeconds: `. */
function placeOf({ source, positions, nodes }: GraphQLError): string {
  if (nodes?.[0]?.kind === Kind.OBJECT_FIELD) return '';
  const before = source?.body.slice(0, positions?.[0] ?? 0) ?? '';
  const name = /([_A-Za-z]\w*)\s*:\s*$/.exec(before.slice(-200))?.[1];
  return name === undefined ? '' : `${name}: `;
}

/** Our message instead of one by which graphql-js says that a document is too large, without a code or a location. */
export function aboutSize(message: string): string | undefined {
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

/** What graphql-js expected and the kind of token it found; the rest of its message quotes the document. */
export function aboutSyntax(message: string): string {
  const known = syntaxErrors.map((form) => form.exec(message)?.[0]).find((text) => text !== undefined);
  return `${known ?? 'Syntax Error: the document cannot be read'}.`;
}
