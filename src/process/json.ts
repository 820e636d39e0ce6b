/**
 * Whether a value is a number that may have lost digits when it was parsed: one from 2^53 on, where doubles leave out integers,
 * or an infinity.
 */
export function isImprecise(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER;
}

/** Whether a JSON value nests at most `levels` levels. Unlike an unbounded walk, it cannot overflow the stack. */
export function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  return members.length === 0 || (levels > 0 && members.every((member) => isNestedWithin(member, levels - 1)));
}

/** Decodes UTF-8, the only encoding of JSON (RFC 8259, section 8.1); throws a TypeError for bytes that are none. */
export const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The deepest nesting of metadata, in levels. It also bounds whole requests, in which metadata is not yet told apart. */
export const maxMetadataDepth = 20;

/** Of a text from so many characters on, also escapes count: a control character takes six bytes. */
const longText = 1000;

/**
 * How many of `bytes` are left, at most, after the JSON of a value, of which it counts little more than names and text. Negative,
 * and returned early, when the JSON cannot fit. Called before writing, because an object that occurs several times takes memory
 * only when it is written. Recursive: for bounded nesting only.
 */
export function bytesLeftAfter(value: unknown, bytes: number): number {
  if (typeof value === 'string') {
    return bytes - 1 - (value.length < longText ? value : JSON.stringify(value)).length;
  }
  if (typeof value !== 'object' || value === null) return bytes - 1;
  let left = bytes - 1;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && left >= 0; index += 1) left = bytesLeftAfter(value[index], left);
    return left;
  }
  for (const key in value) {
    left = bytesLeftAfter((value as Record<string, unknown>)[key], left - key.length);
    if (left < 0) break;
  }
  return left;
}
