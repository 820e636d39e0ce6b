import type { Places } from '../admission/Places.js';
import type { Quota } from '../admission/Quota.js';
import type { Identify } from '../auth/identify.js';
import type { Operations } from '../operations/Operations.js';
import type { Surroundings } from '../Surroundings.js';
import { type AddressOf, addressReader } from './facts.js';
import { OpenStreams } from './OpenStreams.js';
import { Origins } from './origins.js';
import { Unread } from './Unread.js';

interface EdgeOptions {
  readonly operations: Operations;
  readonly quota: Quota;
  readonly identify: Identify;
  readonly places: Places;
  /** How long a client may read nothing while data waits for it, in milliseconds. Default 30000. */
  readonly stallMs?: number | undefined;
  /** Interval of heartbeats and pings of what stays open, in milliseconds: proxies close idle streams. Default 12000. */
  readonly keepAliveMs?: number | undefined;
}

/** What the transports have in common. */
export interface Edge extends Pick<EdgeOptions, 'operations' | 'quota' | 'identify' | 'places'> {
  readonly addressOf: AddressOf;
  readonly unread: Unread;
  readonly streams: OpenStreams;
  readonly origins: Origins;
  /** Most operations at once on one socket. */
  readonly maxOperations: number;
  readonly keepAliveMs: number;
}

export function edgeOf({ config, log, metrics }: Omit<Surroundings, 'ways'>, options: EdgeOptions): Edge {
  const { stallMs, keepAliveMs = 12_000, ...given } = options;
  return {
    ...given,
    keepAliveMs,
    addressOf: addressReader(config.trustedProxies),
    unread: new Unread(options.places, stallMs),
    streams: new OpenStreams((transport, change) => metrics.openStreams.inc({ transport }, change)),
    origins: new Origins({ allowed: config.corsOrigins, allowsLocal: config.auth.mode === 'developer', log }),
    maxOperations: config.limits.subscriptions,
  };
}
