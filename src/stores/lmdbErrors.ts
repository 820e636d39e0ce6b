import { textOf } from './lmdbDirectory.js';
import { StoreError } from './StoreError.js';

/** The driver gives the cause of a failed commit as a promise that rejects; unhandled, it would end the process. */
export async function errorOfCommit(error: unknown): Promise<StoreError> {
  if (!(typeof error === 'object' && error !== null && 'commitError' in error)) return lmdbError(error);
  return Promise.resolve(error.commitError).then(() => new StoreError('failed'), lmdbError);
}

const signsOfFullness: readonly (readonly [RegExp, string])[] = [
  [/MDB_MAP_FULL/, 'MDB_MAP_FULL'],
  [/No space left/i, 'ENOSPC'],
  [/File too large/i, 'EFBIG'],
  [/Disk quota/i, 'EDQUOT'],
  [/Input\/output error/i, 'EIO'], // also when the disk had room for only a part of a page
];

/** Translates an exception of the driver. */
export function lmdbError(error: unknown): StoreError {
  const full = signsOfFullness.find(([text]) => text.test(textOf(error)));
  return full ? new StoreError('full', undefined, full[1]) : new StoreError('failed');
}
