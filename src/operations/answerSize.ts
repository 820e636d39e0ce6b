import { GatewayError } from '../errors/errors.js';

/** The error that replaces an answer that is too large. */
export function answerTooLarge(maxBytes: number): GatewayError {
  return new GatewayError('BAD_USER_INPUT', `The answer must have at most ${maxBytes} bytes (MAX_ANSWER_BYTES)`);
}

const [quotes, brackets, comma, colon] = [2, 2, 1, 1] as const; // their bytes in JSON

/**
 * An upper bound of what is left of `bytes` after `JSON.stringify` has written a value: a character counts as one byte.
 * Negative when the value cannot fit, and then returned early. Objects that occur several times take memory only when they
 * are written, so this comes first. Recursive: for bounded nesting only.
 */
export function leftAfter(value: unknown, bytes: number): number {
  if (typeof value === 'string') return bytes - quotes - value.length;
  if (typeof value !== 'object' || value === null) return bytes - JSON.stringify(value).length;
  if ('toJSON' in value && typeof value.toJSON === 'function') return leftAfter(value.toJSON(), bytes);
  let left = bytes - brackets + comma; // each member is taken with a comma, and the first needs none
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && left >= 0; index += 1) left = leftAfter(value[index], left) - comma;
    return value.length === 0 ? bytes - brackets : left;
  }
  let isEmpty = true;
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key];
    if (member === undefined) continue;
    isEmpty = false;
    left = leftAfter(member, left - quotes - key.length - colon) - comma;
    if (left < 0) break;
  }
  return isEmpty ? bytes - brackets : left;
}
