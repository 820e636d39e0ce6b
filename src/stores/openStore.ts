import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../process/systemErrors.js';
import { guarded } from './guarded.js';
import type { JournalOptions } from './journal.js';
import { LocalStore } from './LocalStore.js';
import type { Store } from './Store.js';

/**
 * Opens the store that `CACHE_URL` names, loading only the driver it needs. With a Redis that is down it starts degraded.
 * Rejects with a ConfigError when the URL or the directory cannot be used.
 */
export async function openStore(cacheUrl: string, options: JournalOptions): Promise<Store> {
  if (cacheUrl === 'memory:') return new LocalStore();
  const directory = directoryIn(cacheUrl);
  if (directory) return LocalStore.open(directory, options);
  const store = guarded(await openRedis(cacheUrl), options);
  // Two operations without an answer count as an outage: this reports one now, not at the first read.
  await Promise.allSettled([store.get('start'), store.get('start')]);
  return store;
}

/**
 * Opens a store that exists already, and creates none. To `write` in a directory, no gateway may be using it.
 * @throws ConfigError also for `memory:`, which processes cannot share
 */
export async function openExistingStore(cacheUrl: string, use: 'read' | 'write'): Promise<Store> {
  if (cacheUrl === 'memory:') throw new ConfigError('CACHE_URL is memory:, which no other process can read');
  const directory = directoryIn(cacheUrl);
  if (!directory) return openRedis(cacheUrl);
  if (!existsSync(directory)) throw new ConfigError(`CACHE_URL: there is no store in ${directory}`);
  if (use === 'read') return LocalStore.read(directory);
  return LocalStore.open(directory, { waitMs: 0 });
}

/** The directory that a CACHE_URL names, as an absolute path; undefined where it names no directory. */
export const directoryIn = (cacheUrl: string): string | undefined =>
  cacheUrl.startsWith('file:') ? resolve(cacheUrl.slice('file:'.length)) : undefined;

/** A CACHE_URL without its secrets, fit to be shown: `redis://cache:6379/0, with a password`. */
export function shownStore(cacheUrl: string): string {
  const directory = directoryIn(cacheUrl);
  if (directory) return `file:${directory}`;
  const [address = ''] = cacheUrl.split('?', 1);
  const login = /[^/]*@/.exec(address)?.[0] ?? '';
  return address.replace(login, '') + (login.includes(':') ? ', with a password' : '');
}

async function openRedis(cacheUrl: string): Promise<Store> {
  const { RedisStore } = await import('./RedisStore.js');
  return RedisStore.open(cacheUrl);
}
