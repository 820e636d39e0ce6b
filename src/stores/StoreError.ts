/** What the store did, in each kind of trouble. */
const troubles = {
  'timed-out': 'did not answer in time',
  unreachable: 'cannot be reached',
  refused: 'refused the operation',
  closed: 'is closed',
};

/** Why a store could not do what it was asked: a bounded set, fit for a metric label. */
type StoreTrouble = keyof typeof troubles;

/** What the store did, by {@link StoreError.code}: a code or, of replies with no code but `ERR`, the server's words. */
export const causes: Readonly<Record<string, string>> = {
  OOM: 'is out of memory',
  MISCONF: 'cannot save to its disk',
  READONLY: 'accepts no writes: it is a read-only replica',
  NOPERM: 'does not permit the command',
  WRONGPASS: 'refused the password',
  NOAUTH: 'wants a password',
  MOVED: 'is part of a cluster: expected redis+cluster:// in CACHE_URL',
  ECONNRESET: 'closed the connection',
  ETIMEDOUT: 'did not answer in time',
  EPROTO: 'answered in another protocol',
  'ERR DB index is out of range': 'has no database of this number',
  'ERR max number of clients reached': 'takes no more connections',
  'ERR This instance has cluster support disabled': 'is no cluster: expected redis:// in CACHE_URL',
  'ERR No such master with that name': 'has no group of this name',
  'ERR unknown command': 'does not know a command that the gateway needs',
  ENOSPC: 'cannot write: disk full',
  EDQUOT: 'cannot write: disk quota used up',
  EFBIG: 'cannot write: file size limit reached',
  EIO: 'cannot write: disk full or broken',
  EROFS: 'cannot write: the file system is read-only',
  EACCES: 'cannot write: no permission',
  ENOENT: 'or its file lock is gone', // after "The directory"
  ELOCKED: 'may have been taken by another gateway while this one stood still: restart it if this does not end',
  NOREPLICAS: 'has fewer replicas than its min-replicas-to-write',
};

/** In a few words for the log: `Redis refused the password (WRONGPASS)`. */
export function storeCause(cacheUrl: string, { trouble, code = '' }: StoreError): string {
  const name = cacheUrl.startsWith('redis') ? 'Redis' : 'The directory';
  const what = causes[code] ?? causes[code.split(' ', 1)[0] ?? ''] ?? troubles[trouble];
  return `${name} ${what}${code && ` (${code})`}`;
}

/**
 * The only error a store rejects with. It never keeps the driver's error as `cause`: that may hold the failed command with
 * its keys, values and passwords.
 */
export class StoreError extends Error {
  override readonly name = 'StoreError';

  constructor(
    readonly trouble: StoreTrouble,
    /** The code of the server, the driver or the system, such as `WRONGPASS` or `ENOSPC`; for the log, never a value. */
    readonly code?: string,
    /** Whether the operation may have taken effect although it failed. Default: if no answer came. */
    readonly mayBeDone = trouble === 'timed-out' || trouble === 'unreachable',
  ) {
    super(`The store ${troubles[trouble]}`);
  }
}

/** For `catch`, where there is a way without the store. Throws what is not the store's, and the error of a closed store. */
export function goOnAlone(error: unknown): undefined {
  if (!(error instanceof StoreError) || error.trouble === 'closed') throw error;
}
