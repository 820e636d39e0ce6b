import { type OpenedStore, openStore, shownStore } from '../stores/openStore.js';
import { storeCause } from '../stores/StoreError.js';
import type { Watching } from './watchedDecisionPoint.js';

/** Opens the store of CACHE_URL, whose troubles and times the operator sees. Rejects as {@link openStore}. */
export async function openWatchedStore(url: string, { log, metrics }: Watching): Promise<OpenedStore> {
  const store = shownStore(url);
  const kind = store.startsWith('lmdb:') ? 'lmdb' : 'redis';
  const opened = await openStore(url, {
    onDegraded: (trouble, detail) => {
      metrics.storeDegraded.set(1);
      const cause = storeCause(kind, trouble, detail);
      log.error({ store, trouble, cause }, 'the store of CACHE_URL cannot be used: this process goes on by itself');
    },
    onRecovered: (durationMs, count) => {
      metrics.storeDegraded.set(0);
      log.info({ store, durationMs: Math.round(durationMs), count }, 'the store of CACHE_URL is used again');
    },
    onSetAside: (file) => {
      log.error({ file }, 'the database in the directory of CACHE_URL was damaged: it is renamed and a new one begun');
    },
  });
  return timed(opened, metrics.onStoreCommand);
}

/** Times each command of a store, also one that fails. */
function timed<S extends object>(store: S, onCommand: (command: string, seconds: number) => void): S {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]): unknown => {
        const beganAt = performance.now();
        const result: unknown = member.apply(target, given);
        const end = () => onCommand(String(name), (performance.now() - beganAt) / 1000);
        if (result instanceof Promise) result.then(end, end);
        return result;
      };
    },
  });
}
