import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Holder, Places, Release } from '../admission/Places.js';
import type { Authenticator } from '../auth/Authenticator.js';
import { GatewayError } from '../errors/errors.js';
import type { Operations } from '../operations/Operations.js';
import type { RunningServices, Surroundings } from '../services.js';
import { addressReader, whenOver } from './facts.js';
import { Origins } from './origins.js';

interface EdgeOptions extends Surroundings, Pick<RunningServices, 'quota' | 'places'> {
  readonly operations: Operations;
  readonly authenticator: Authenticator;
  /** The operations with which the explorers open, each in a tab. */
  readonly explorerOperations: readonly string[];
  /** Aborts when the process drains: no stream begins any more, and open sockets close once they are idle. */
  readonly draining: AbortSignal;
  /** Why requests should not be sent here now; undefined when they may be. */
  readonly reasonNotReady: () => string | undefined;
}

/** What the transports have in common. */
export type Edge = ReturnType<typeof edgeOf>;

export function edgeOf(options: EdgeOptions) {
  const { config, places } = options;
  return {
    ...options,
    addressOf: addressReader(config.TRUSTED_PROXIES),
    unread: new Unread(places, config.stallMs),
    origins: new Origins(options),
  };
}

/** Refuses a stream, or an operation on an open socket, while the process drains. */
export const shuttingDown = new GatewayError('SHUTTING_DOWN', 'The gateway is shutting down', {
  httpStatus: 503,
});

/** Bytes for which a peer gets `stallMs` once more: with the default of 30 s, it has to take 50 kB a second. */
const bytesPerStall = 1_500_000;

/** Counts the bytes that a peer has not taken yet as held by its caller, and ends a connection whose peer takes too long. */
class Unread {
  constructor(
    private readonly places: Places,
    private readonly stallMs: number,
  ) {}

  /**
   * Counts `bytes` that wait for the peer; returns what to call once they are taken, or the connection has ended. Ends the
   * connection when there is no room for them, unless the system takes them at once. Does not listen for that end itself: a
   * socket may have thousands of messages that wait, and each listener would be looked for among all of them.
   */
  hold(socket: Socket, holder: Holder, bytes: number): Release | undefined {
    if (bytes === 0 || socket.destroyed) return undefined;
    if (!this.places.hasRoom('bytes', holder, bytes)) {
      // Two turns: Node.js hands a stream's bytes to the system later in this turn, and over TLS reports in the next turn that
      // the system has taken them.
      let cut = setImmediate(() => {
        cut = setImmediate(() => socket.destroy());
      });
      return () => clearImmediate(cut);
    }
    const release = this.places.take('bytes', holder, bytes);
    const toRead = Math.max(bytes, socket.writableLength);
    // Not the socket's own timeout: a peer that reads nothing could postpone it by sending.
    const timer = setTimeout(() => socket.destroy(), this.stallMs * (1 + toRead / bytesPerStall)).unref();
    return () => {
      clearTimeout(timer);
      release();
    };
  }

  /** Counts the bytes of a written answer that the peer has not taken yet. */
  holdAnswer(response: ServerResponse, holder: Holder): void {
    const taken = this.hold(response.req.socket, holder, response.writableLength);
    if (taken !== undefined) whenOver(response, taken);
  }
}
