/** Where a JSON text may hold an integer of 16 digits or more: a double holds every shorter one. */
const longInteger = /[-[:,\s]\d{16}/;

/** Escapes, quotes and numbers. A sign is not part of a number here, so that two signs in a row stay invalid JSON. */
const tokens = /\\.|"|(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;

/**
 * As `JSON.parse`, but an integer that a double cannot hold becomes an infinity, as a number that is too large does anyway:
 * {@link faultOfMetadata} finds both. @throws SyntaxError
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

/** The path of the first infinity, as `crm.ids.0`; undefined when there is none. It recurses: for bounded nesting only. */
function pathOfInfinity(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    if (member === Infinity || member === -Infinity) return key;
    const below = pathOfInfinity(member);
    if (below !== undefined) return `${key}.${below}`;
  }
  return undefined;
}

/** The deepest nesting of metadata, in levels. */
export const maxMetadataDepth = 20;
const maxMetadataValues = 10_000;

/**
 * Why metadata is not passed on, as a caller sends it or as the service returns it: a place in it, such as `.crm.ids.0`, and a
 * message about that place. Undefined when it can be.
 */
export function faultOfMetadata(metadata: unknown): { readonly place: string; readonly message: string } | undefined {
  if (!isNestedWithin(metadata, maxMetadataDepth)) {
    return { place: '', message: `must be nested at most ${maxMetadataDepth} levels` };
  }
  if (valuesIn(metadata, maxMetadataValues) > maxMetadataValues) {
    return { place: '', message: `must have at most ${maxMetadataValues} values` };
  }
  const lost = pathOfInfinity(metadata);
  if (lost === undefined) return undefined;
  return { place: `.${lost}`, message: 'must be a string: it would not stay unchanged as a JSON number' };
}

/** How many values a JSON value holds, itself included; stops counting above `most`. */
function valuesIn(value: unknown, most: number): number {
  let count = 1;
  if (typeof value !== 'object' || value === null) return count;
  for (const member of Object.values(value)) {
    if (count > most) break;
    count += valuesIn(member, most - count);
  }
  return count;
}

/** Whether a JSON value nests at most `levels` levels. Unlike an unbounded walk, it cannot overflow the stack. */
export function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  const members = Object.values(value);
  return members.length === 0 || (levels > 0 && members.every((member) => isNestedWithin(member, levels - 1)));
}
