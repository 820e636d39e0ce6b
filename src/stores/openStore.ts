import { resolve } from 'node:path';
import { FallbackStore, type FallbackStoreOptions } from './FallbackStore.js';
import { MemoryStore } from './MemoryStore.js';
import type { Store } from './Store.js';
import { StoreError } from './StoreError.js';

/**
 * Time limit of one operation, in milliseconds. Longer for LMDB, whose writes stall while the disk is busy: a process that
 * goes on without the store calls the service again. The waits for a lease and for its value must fit into `leaseMarginMs`.
 */
const limitMs = { memory: 250, redis: 250, lmdb: 1000 };

const lmdbScheme = 'lmdb:';

export interface OpenStoreOptions extends FallbackStoreOptions {
  /** The database on disk was damaged; it was renamed to `name`, in the same directory. */
  readonly onSetAside?: (name: string) => void;
}

/** `degraded`: the store now answers from this process alone. */
export type OpenedStore = Store &
  Pick<FallbackStore, 'degraded' | 'takeUnsettled'> &
  Partial<Pick<FallbackStore, 'delivery'>>;

/**
 * Opens the store that `CACHE_URL` names, loading only the driver it needs. With a Redis that is down it starts degraded.
 * Rejects with a `misconfigured` {@link StoreError}, fit to be shown, when the URL or the directory cannot be used.
 */
export async function openStore(cacheUrl: string, options: OpenStoreOptions = {}): Promise<OpenedStore> {
  if (cacheUrl === 'memory:') return new MemoryStore();
  const primary = await openShared(cacheUrl, options);
  const store = new FallbackStore(primary, { limitMs: limitMs[primary.kind], ...options });
  await store.start();
  return store;
}

/**
 * Opens an existing store without creating or renaming anything, and without a fallback: an operation that fails rejects.
 * @throws StoreError `misconfigured`, fit to be shown, also when there is no store yet or processes cannot share it
 */
export async function openExistingStore(cacheUrl: string): Promise<Store> {
  if (cacheUrl === 'memory:')
    throw new StoreError('misconfigured', 'CACHE_URL is memory:, which no other process can read');
  return openShared(cacheUrl, { existing: true });
}

/** A CACHE_URL without its secrets, fit to be shown: `redis://cache:6379/0, with a password`. */
export function shownStore(cacheUrl: string): string {
  if (cacheUrl.startsWith(lmdbScheme)) return `${lmdbScheme}${resolve(cacheUrl.slice(lmdbScheme.length))}`;
  const [, scheme = cacheUrl, login = '', rest = ''] = /^(rediss?[+a-z]*:\/\/)(?:(.*)@)?([^?]*)/.exec(cacheUrl) ?? [];
  return scheme + rest + (login.includes(':') ? ', with a password' : '');
}

async function openShared(
  cacheUrl: string,
  { existing = false, ...options }: OpenStoreOptions & { readonly existing?: boolean },
): Promise<Store> {
  if (/^lmdb:./.test(cacheUrl)) {
    const { LmdbStore } = await import('./LmdbStore.js');
    if (existing) return LmdbStore.openExisting(cacheUrl.slice(lmdbScheme.length));
    return LmdbStore.open(cacheUrl.slice(lmdbScheme.length), options);
  }
  if (/^rediss?(\+sentinel|\+cluster)?:\/\//.test(cacheUrl)) {
    const { RedisStore } = await import('./RedisStore.js');
    return RedisStore.open(cacheUrl);
  }
  throw new StoreError('misconfigured', 'CACHE_URL must begin with memory:, lmdb: or one of the redis forms');
}
