import type { Config } from '../config/config.js';
import { GatewayError, type GatewayErrorOptions } from '../errors/errors.js';
import { heapPart } from '../process/memory.js';

/** Most calls to the service, and as many to the decision point, at once. */
const callsInAll = 256;

/**
 * What callers hold for longer than one turn of the event loop, the most that may be held of it at one moment, and the setting or
 * number that bounds it. One caller may hold a quarter of most resources.
 */
export function boundsFor({ MAX_CONNECTIONS, answerBytes }: Pick<Config, 'MAX_CONNECTIONS' | 'answerBytes'>) {
  const bytes = Math.max(heapPart(4), 2 * answerBytes);
  const setting = 'MAX_CONNECTIONS';
  const byConnections = {
    setting,
    perHolder: Math.max(1, Math.floor(MAX_CONNECTIONS / 4)),
    perProcess: MAX_CONNECTIONS,
  };
  const byCalls = { setting: `${callsInAll} in all`, perHolder: callsInAll / 8, perProcess: callsInAll };
  return {
    /** Sockets and event streams of authenticated callers. */
    streams: { name: 'open streams', ...byConnections },
    watches: { name: 'subscriptions and waiting queries', ...byConnections },
    newcomers: {
      name: 'unauthenticated connections',
      setting,
      perHolder: Math.max(5, Math.floor(MAX_CONNECTIONS / 20)),
      perProcess: Infinity, // beyond twice `perHolder`, `webSocketHandler` drops the oldest
    },
    /** Reads and creations. Like questions to the decision point, they wait in a `CallQueue`. */
    calls: { name: 'calls to the service at once', ...byCalls },
    decisions: { name: 'calls to the decision point at once', ...byCalls },
    bytes: {
      name: 'bytes of requests under way and unread answers',
      setting: 'the memory of the process',
      perHolder: Math.max(Math.floor(bytes / 4), answerBytes),
      perProcess: bytes,
    },
  };
}

type Bounds = Readonly<ReturnType<typeof boundsFor>>;
type Resource = keyof Bounds;

/**
 * Who holds something: see {@link Caller.holder}, or the address of a newcomer. Undefined for callers without an identity, whom only the
 * bound of the process limits.
 */
export type Holder = string | undefined;

/** Gives back what was taken; further calls do nothing. */
export type Release = () => void;

/** Counts what each caller holds of this process, so that none can take it all. */
export class Places {
  /** What each holder holds, by resource and holder; what all hold together, by the resource alone. */
  readonly #held = new Map<string, number>();

  constructor(private readonly bounds: Bounds) {}

  /** @throws GatewayError RATE_LIMITED (429) at the holder's own bound or that of the process */
  take(resource: Resource, holder: Holder, amount = 1): Release {
    const { name, setting, perHolder } = this.bounds[resource];
    if (!this.#hasShare(resource, holder, amount)) {
      const per = resource === 'newcomers' ? 'address' : 'caller';
      throw rateLimited(`At most ${perHolder} ${name} per ${per} (a share of ${setting})`);
    }
    if (!this.hasRoom(resource, holder, amount)) {
      throw rateLimited(`The gateway has no room for more ${name} (${setting})`);
    }
    this.#change(resource, holder, amount);
    let isHeld = true;
    return () => {
      if (isHeld) this.#change(resource, holder, -amount);
      isHeld = false;
    };
  }

  hasRoom(resource: Resource, holder: Holder, amount = 1): boolean {
    const { perProcess } = this.bounds[resource];
    return this.#hasShare(resource, holder, amount) && this.heldByAll(resource) + amount <= perProcess;
  }

  /** Whether the holder's own bound leaves room. */
  #hasShare(resource: Resource, holder: Holder, amount: number): boolean {
    return holder === undefined || this.held(resource, holder) + amount <= this.bounds[resource].perHolder;
  }

  /** How much of a resource a holder holds. Callers without an identity count as one. */
  held(resource: Resource, holder: Holder): number {
    return this.#held.get(nameOf(resource, holder)) ?? 0;
  }

  heldByAll(resource: Resource): number {
    return this.#held.get(resource) ?? 0;
  }

  #change(resource: Resource, holder: Holder, amount: number): void {
    for (const name of [resource, nameOf(resource, holder)]) {
      const held = (this.#held.get(name) ?? 0) + amount;
      if (held > 0) this.#held.set(name, held);
      else this.#held.delete(name);
    }
  }
}

const nameOf = (resource: Resource, holder: Holder): string => `${resource} ${holder ?? ''}`;

export function rateLimited(message: string, options: GatewayErrorOptions = {}): GatewayError {
  return new GatewayError('RATE_LIMITED', message, { httpStatus: 429, ...options });
}
