// What a gateway asks of its store, counted from outside of it: transactions written to LMDB, whose reads are reads of memory,
// or commands that Redis has run, those of scripts included.

import Redis from 'ioredis';
import { open } from 'lmdb';

/** Counts the transactions of the database in `path` so far. */
export async function lmdbTransactions(path) {
  const database = open({ path, noSubdir: false, readOnly: true });
  try {
    return database.getStats().lastTxnId;
  } finally {
    await database.close();
  }
}

/** `{ count, stop }`: `count()` gives the commands of the Redis at `url` so far. */
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
