import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { guarded } from './guarded.js';
import type { JournalOptions } from './journal.js';
import { LocalStore } from './LocalStore.js';
import type { Store } from './Store.js';
import { misconfigured } from './StoreError.js';

const fileScheme = 'file:';

/**
 * Opens the store that `CACHE_URL` names, loading only the driver it needs. With a Redis that is down it starts degraded.
 * Rejects with a `misconfigured` StoreError, fit to be shown, when the URL or the directory cannot be used.
 */
export async function openStore(cacheUrl: string, options: JournalOptions): Promise<Store> {
  if (cacheUrl === 'memory:') return new LocalStore(options);
  if (/^file:./.test(cacheUrl)) return LocalStore.open(cacheUrl.slice(fileScheme.length), options);
  const store = guarded(await openRedis(cacheUrl), options);
  // Two operations without an answer count as an outage: this reports one now, not at the first read.
  await Promise.allSettled([store.get('start'), store.get('start')]);
  return store;
}

/**
 * Opens a store that exists already, and creates none. To `write` in a directory, no gateway may be using it.
 * @throws StoreError `misconfigured`, fit to be shown, also for `memory:`, which processes cannot share
 */
export async function openExistingStore(cacheUrl: string, use: 'read' | 'write'): Promise<Store> {
  if (cacheUrl === 'memory:') throw misconfigured('CACHE_URL is memory:, which no other process can read');
  if (!cacheUrl.startsWith(fileScheme)) return openRedis(cacheUrl);
  const directory = resolve(cacheUrl.slice(fileScheme.length));
  if (!existsSync(directory)) throw misconfigured(`CACHE_URL: there is no store in ${directory}`);
  if (use === 'read') return LocalStore.read(directory);
  return LocalStore.open(directory, { waitMs: 0 });
}

/** A CACHE_URL without its secrets, fit to be shown: `redis://cache:6379/0, with a password`. */
export function shownStore(cacheUrl: string): string {
  if (cacheUrl.startsWith(fileScheme)) return `${fileScheme}${resolve(cacheUrl.slice(fileScheme.length))}`;
  const form = /^(rediss?[+a-z]*:\/\/)(?:([^/?#]*)@)?([^?]*)/;
  const [, scheme = cacheUrl, login = '', rest = ''] = form.exec(cacheUrl) ?? [];
  return scheme + rest + (login.includes(':') ? ', with a password' : '');
}

async function openRedis(cacheUrl: string): Promise<Store> {
  const { RedisStore } = await import('./RedisStore.js');
  return RedisStore.open(cacheUrl);
}
