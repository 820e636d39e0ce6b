import { getHeapStatistics } from 'node:v8';
import { GatewayError } from '../errors/errors.js';

/**
 * What can be held for longer than a moment. `streams`: open sockets and event streams of known callers. `newcomers`:
 * sockets that are not authenticated yet, held by address. `watches`: subscriptions and waiting polls. `bytes`: request
 * bodies being worked on and answers that were not read yet.
 */
export type Resource = 'streams' | 'newcomers' | 'watches' | 'bytes';

/** The most that may be held at one moment. */
export interface Bound {
  /** By one holder: a caller, or for newcomers an address. */
  readonly perHolder: number;
  readonly perProcess: number;
}

export type Bounds = Readonly<Record<Resource, Bound>>;

/** Who holds something, see `holderOf`; undefined for callers without an identity, who share the bound of the process. */
export type Holder = string | undefined;

/** Gives back what was taken; calls after the first do nothing. */
export type Release = () => void;

const described: Readonly<Record<Resource, string>> = {
  streams: 'open streams',
  newcomers: 'connections that are not authenticated',
  watches: 'subscriptions and waiting polls',
  bytes: 'bytes of requests under way and unread answers',
};

/** The setting that the bounds follow, for those who are refused. */
const settings: Readonly<Record<Resource, string>> = {
  streams: 'MAX_CONNECTIONS',
  newcomers: 'MAX_CONNECTIONS',
  watches: 'MAX_CONNECTIONS',
  bytes: 'the memory of the process',
};

const resources = Object.keys(described) as readonly Resource[];

/**
 * Keeps account of what every caller holds of this process, so that none can take it all. Asked before anything that
 * outlives the present turn of the event loop is begun.
 */
export class Ledger {
  readonly bounds: Bounds;
  readonly #total: Record<Resource, number> = emptyAccount();
  /** Of those who hold something now. */
  readonly #accounts = new Map<string, Record<Resource, number>>();

  constructor(bounds: Bounds) {
    this.bounds = bounds;
  }

  /** @throws GatewayError RATE_LIMITED (429) at the holder's own bound or that of the process */
  take(resource: Resource, holder: Holder, amount = 1): Release {
    const refusal = this.refusalOf(resource, holder, amount);
    if (refusal !== undefined) throw refusal;
    this.#change(resource, holder, amount);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#change(resource, holder, -amount);
    };
  }

  /** Why {@link take} would throw now; undefined when it would not. */
  refusalOf(resource: Resource, holder: Holder, amount = 1): GatewayError | undefined {
    const { perHolder, perProcess } = this.bounds[resource];
    if (holder !== undefined && this.held(resource, holder) + amount > perHolder) {
      const each = resource === 'newcomers' ? 'address' : 'caller';
      const share = `a share of ${settings[resource]}`;
      return refused(`At most ${perHolder} ${described[resource]} per ${each} (${share})`);
    }
    if (this.#total[resource] + amount > perProcess) {
      return refused(`The gateway has no room for more ${described[resource]} (${settings[resource]})`);
    }
    return undefined;
  }

  /** What one holder, or with none given the whole process, holds now. */
  held(resource: Resource, holder?: string): number {
    if (holder === undefined) return this.#total[resource];
    return this.#accounts.get(holder)?.[resource] ?? 0;
  }

  #change(resource: Resource, holder: Holder, amount: number): void {
    this.#total[resource] += amount;
    if (holder === undefined) return;
    const account = this.#accounts.get(holder) ?? emptyAccount();
    account[resource] += amount;
    if (resources.some((each) => account[each] > 0)) this.#accounts.set(holder, account);
    else this.#accounts.delete(holder);
  }
}

/** Where everybody may hold the same. */
export interface LedgerLimits {
  /** MAX_CONNECTIONS */
  readonly connections: number;
  /** MAX_ANSWER_BYTES */
  readonly answerBytes: number;
}

/**
 * One caller may hold a quarter of what the process has room for; bytes are bounded by a quarter of the heap. Newcomers
 * have a tenth of the places of streams, but ten at least, beside those, and one address half of them.
 */
export function boundsFor({ connections, answerBytes }: LedgerLimits): Bounds {
  const bytes = Math.max(Math.floor(getHeapStatistics().heap_size_limit / 4), 2 * answerBytes);
  const newcomers = Math.max(10, Math.floor(connections / 10));
  return {
    streams: { perHolder: atLeastOne(connections / 4), perProcess: connections },
    watches: { perHolder: atLeastOne(connections / 4), perProcess: connections },
    newcomers: { perHolder: atLeastOne(newcomers / 2), perProcess: newcomers },
    bytes: { perHolder: Math.max(Math.floor(bytes / 4), answerBytes), perProcess: bytes },
  };
}

function atLeastOne(share: number): number {
  return Math.max(1, Math.floor(share));
}

function emptyAccount(): Record<Resource, number> {
  return { streams: 0, newcomers: 0, watches: 0, bytes: 0 };
}

function refused(message: string): GatewayError {
  return new GatewayError('RATE_LIMITED', message, { retryAfterSeconds: 1, httpStatus: 429 });
}
