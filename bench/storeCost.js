// Counts the store operations of a gateway from outside: write transactions of LMDB (its reads are memory reads), or commands
// that Redis has run, including those in scripts.

import Redis from 'ioredis';
import { open } from 'lmdb';

/** The number of write transactions of the database in `path` so far. */
export async function lmdbTransactions(path) {
  const database = open({ path, noSubdir: false, readOnly: true });
  try {
    return database.getStats().lastTxnId;
  } finally {
    await database.close();
  }
}

/** `{ count, stop }`: `count()` resolves with the number of commands that the Redis at `url` has run so far. */
export function redisCommands(url) {
  const redis = new Redis(url);
  const notOfTheGateway = new Set(['info', 'ping', 'hello', 'client']);
  return {
    async count() {
      const lines = (await redis.info('commandstats')).matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm);
      return [...lines].reduce(
        (sum, [, name, calls]) => (notOfTheGateway.has(name.split('|')[0]) ? sum : sum + Number(calls)),
        0,
      );
    },
    stop: () => redis.disconnect(),
  };
}
