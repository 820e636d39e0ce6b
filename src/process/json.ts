/** Where a JSON text may hold an integer of 16 digits or more: a double holds every shorter one. */
const longInteger = /[-[:,\s]\d{16}/;

/** Escapes, quotes, and numbers of 16 characters or more without their sign, so that two signs in a row stay invalid JSON. */
const tokens = /\\.|"|(?=[\d.eE+-]{16})(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;

/**
 * As `JSON.parse`, but an integer that a double cannot hold becomes an infinity, as a number that is too large does anyway:
 * `faultOfMetadata` finds both. @throws SyntaxError
 */
export function parseJson(text: string): unknown {
  if (!longInteger.test(text)) return JSON.parse(text);
  let inString = false;
  const withInfinities = text.replace(tokens, (token) => {
    if (token === '"') inString = !inString;
    return !inString && isLostInteger(token) ? '1e999' : token;
  });
  return JSON.parse(withInfinities);
}

/** Whether a number, as JSON or GraphQL writes it, is an integer that a double cannot hold. */
export function isLostInteger(number: string): boolean {
  if (!/^-?\d+(?:[eE]\+?\d+)?$/.test(number)) return false;
  const value = Number(number);
  if (Number.isSafeInteger(value)) return false;
  return !Number.isFinite(value) || significantDigits(number) !== significantDigits(String(value));
}

function significantDigits(number: string): string {
  return number
    .replace(/e.*$/i, '')
    .replace(/[-.]/g, '')
    .replace(/(?<!0)0+$/, '');
}

/** Whether a JSON value nests at most `levels` levels. Unlike an unbounded walk, it cannot overflow the stack. */
export function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  return members.length === 0 || (levels > 0 && members.every((member) => isNestedWithin(member, levels - 1)));
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The deepest nesting of metadata, in levels. It also bounds whole requests, in which metadata is not yet told apart. */
export const maxMetadataDepth = 20;
