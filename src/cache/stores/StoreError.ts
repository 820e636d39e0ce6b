/** Why a store could not do what it was asked: a bounded set, fit for a metric label. */
export type StoreTrouble =
  | 'timed-out'
  | 'unreachable'
  | 'read-only'
  | 'full'
  | 'not-permitted'
  | 'misconfigured'
  | 'closed'
  | 'failed';

/**
 * The only error a store rejects with. Its message is written by us: what a driver throws may hold the failed command
 * with its arguments (keys, values, the password of an AUTH), so it is classified here and then let go, not kept as `cause`.
 */
export class StoreError extends Error {
  override readonly name = 'StoreError';

  constructor(
    readonly trouble: StoreTrouble,
    message: string = messages[trouble],
  ) {
    super(message);
  }
}

/** The trouble behind anything thrown by a store. */
export function troubleOf(error: unknown): StoreTrouble {
  return error instanceof StoreError ? error.trouble : 'failed';
}

const messages: Readonly<Record<StoreTrouble, string>> = {
  'timed-out': 'The store did not answer in time.',
  unreachable: 'The store cannot be reached.',
  'read-only': 'The store accepts no writes: it is a read-only replica.',
  full: 'The store accepts no writes: it is out of space.',
  'not-permitted': 'The store refused the credentials or the permission.',
  misconfigured: 'CACHE_URL cannot be used.',
  closed: 'The store is closed.',
  failed: 'The store failed.',
};
