import type { LeasedCacheOptions } from '../cache/ReadRequest.js';
import type { SealedStore } from '../cache/SealedStore.js';
import type { CallOptions } from '../upstream/ResilientFetch.js';
import type { TaxpayerService } from './TaxpayerService.js';
import type { WatcherOptions } from './Watcher.js';

/** What every cached read of the service needs. */
export interface ReadingOptions {
  readonly service: TaxpayerService;
  readonly store: SealedStore;
  readonly cache: Pick<LeasedCacheOptions<unknown>, 'memoryBytes' | 'workMs' | 'inQueue' | 'onRead' | 'onBytes'>;
  /** Longest time that anything about a taxpayer is kept, in milliseconds. */
  readonly keepMs: number;
  readonly watching: WatcherOptions;
}

export interface ReadCall extends CallOptions {
  /** Nobody waits for the answer: the call is made to keep watchers up to date. */
  readonly isWatch?: boolean;
  /** Starts a read only once per name, however often one request asks for it. */
  once?<View>(name: string, start: () => Promise<View>): Promise<View>;
}
