import type { Config } from '../config/config.js';
import { openStore, shownStore } from '../stores/openStore.js';
import type { Store } from '../stores/Store.js';
import { storeCause } from '../stores/StoreError.js';
import type { Watching } from './watchedDecisionPoint.js';

/** Opens the store of CACHE_URL, whose troubles and times the operator sees. Rejects as {@link openStore}. */
export async function openWatchedStore({ cache, drainTimeoutMs }: Config, { log, metrics }: Watching): Promise<Store> {
  const store = shownStore(cache.url);
  const opened = await openStore(cache.url, {
    waitMs: drainTimeoutMs,
    onDegraded: (error) => {
      metrics.storeDegraded.set(1);
      const cause = storeCause(store, error);
      const { trouble } = error;
      log.error({ store, trouble, cause }, 'store unavailable, continuing without it');
    },
    onRecovered: (durationMs) => {
      metrics.storeDegraded.set(0);
      log.info({ store, durationMs: Math.round(durationMs) }, 'store available again');
    },
    onSetAside: (file) => {
      log.error({ file }, 'the file in the directory of CACHE_URL was damaged: what could be read of it is used');
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
