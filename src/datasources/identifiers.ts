import { badInput } from '../errors/errors.js';

declare const brand: unique symbol;

/** Ids of the service as the caller wrote them, checked by {@link identifiers}. */
export type TaxpayerId = string & { readonly [brand]: 'TaxpayerId' };
export type JobId = string & { readonly [brand]: 'JobId' };

/**
 * Characters an id may not hold: those with a meaning in a URL path, which a proxy on the way might decode and obey, and
 * control characters. The interface states no format beyond "string", so little else is refused.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const forbidden = /[\u0000-\u001f\u007f-\u009f/\\%?#]/;
/** Nothing visible: only white space and characters without width. */
const blank = /^[\s\p{Default_Ignorable_Code_Point}]*$/u;

/** Longest id or key, in characters. */
const maxLength = 256;

/** Checks ids and keys from callers. @throws GatewayError BAD_USER_INPUT naming `path` */
export const identifiers = {
  taxpayerId: (text: string, path = 'taxpayerId') => checked(text, path, segmentProblemOf) as TaxpayerId,
  jobId: (text: string) => checked(text, 'jobId', segmentProblemOf) as JobId,
  /** A key is never sent on, so only its size matters. */
  idempotencyKey: (text: string) => checked(text, 'input.idempotencyKey'),
};

function checked(text: string, path: string, problemOf = (_: string): string | undefined => undefined): string {
  const tooLong = text.length > maxLength ? `must have at most ${maxLength} characters` : undefined;
  const problem = text === '' ? 'must not be empty' : (tooLong ?? problemOf(text));
  if (problem !== undefined) throw badInput(path, problem);
  return text;
}

/** Why a text cannot be one segment of a URL path. */
function segmentProblemOf(text: string): string | undefined {
  if (text === '.' || text === '..') return 'must not be a dot segment';
  if (forbidden.test(text)) return 'must not contain control characters or any of / \\ % ? #';
  if (!text.isWellFormed()) return 'must be well-formed Unicode';
  if (blank.test(text)) return 'must not be blank';
  // A proxy on the way might trim the white space, which makes it a different id.
  if (text.trim() !== text) return 'must not begin or end with white space';
  return undefined;
}
