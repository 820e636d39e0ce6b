import { nameOfId } from '../auth/caller.js';
import { badInput } from '../errors/errors.js';

declare const brand: unique symbol;

/** The service's ids as we name them, checked by {@link identifierReader}. */
export type TaxpayerId = string & { readonly [brand]: 'TaxpayerId' };
export type JobId = string & { readonly [brand]: 'JobId' };

/**
 * Characters an id may not hold: those with a meaning in a URL path, which a proxy on the way might decode and obey, and
 * control characters. The interface states no format beyond "string", so little else is refused.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const forbidden = /[\u0000-\u001f\u007f-\u009f/\\%?#]/;
/** Matches nearly every id: these characters are always allowed, so only the length is checked. */
const usual = /^[\w:~-]+$/;
/** Nothing visible: only white space and characters without width. */
const blank = /^[\s\p{Default_Ignorable_Code_Point}]*$/u;

/** The ids that a caller wrote otherwise than we name them, by name: what is sent to the service is what the caller wrote. */
export type WrittenIds = ReadonlyMap<string, string>;

/** Reads ids from callers and gives their names; `maxLength` is in characters. */
export function identifierReader(maxLength: number) {
  /** @throws GatewayError BAD_USER_INPUT naming `path` when `text` cannot be one segment of a URL path */
  function read(text: string, path: string): string {
    if (usual.test(text) && text.length <= maxLength) return nameOfId(text);
    const problem = sizeProblemOf(text, maxLength) ?? problemOf(text);
    if (problem !== undefined) throw badInput(path, problem);
    return text;
  }
  return {
    taxpayerId: (text: string, path = 'taxpayerId') => read(text, path) as TaxpayerId,
    jobId: (text: string, path = 'jobId') => read(text, path) as JobId,
    /** A key is never sent on, so only its size matters. */
    idempotencyKey: (text: string) => {
      const problem = sizeProblemOf(text, maxLength);
      if (problem !== undefined) throw badInput('input.idempotencyKey', problem);
    },
  };
}

export type IdentifierReader = ReturnType<typeof identifierReader>;

function sizeProblemOf(text: string, maxLength: number): string | undefined {
  if (text === '') return 'must not be empty';
  return text.length > maxLength ? `must have at most ${maxLength} characters` : undefined;
}

function problemOf(text: string): string | undefined {
  if (text === '.' || text === '..') return 'must not be a dot segment';
  if (forbidden.test(text)) return 'must not contain control characters or any of / \\ % ? #';
  if (!text.isWellFormed()) return 'must be well-formed Unicode';
  if (blank.test(text)) return 'must not be blank';
  // A proxy on the way might trim the white space, which makes it a different id.
  if (text.trim() !== text) return 'must not begin or end with white space';
  return undefined;
}
