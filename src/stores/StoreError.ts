const messages = {
  'timed-out': 'The store did not answer in time.',
  unreachable: 'The store cannot be reached.',
  'read-only': 'The store accepts no writes: it is a read-only replica.',
  full: 'The store accepts no writes: it is out of space.',
  'not-permitted': 'The store refused the credentials or the permission.',
  misconfigured: 'CACHE_URL cannot be used.',
  closed: 'The store is closed.',
  failed: 'The store failed.',
};

/** Why a store could not do what it was asked: a bounded set, fit for a metric label. */
export type StoreTrouble = keyof typeof messages;

/**
 * The only error a store rejects with. It never keeps the driver's error as `cause`: that may hold the failed command with
 * its keys, values and passwords.
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
