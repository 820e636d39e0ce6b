import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Config } from '../config/config.js';
import { minRouterSecretLength } from '../config/settings.js';
import { watchSecretFile } from '../config/watchFile.js';
import type { Peer } from '../network/peer.js';
import type { Logger } from '../observability/log.js';
import type { Authenticator } from './Authenticator.js';
import { type Caller, router } from './caller.js';

/** What a client presents: headers of a request, or parameters of a socket with the same names. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly routerSecret: string | undefined;
  readonly remoteAddress: string | undefined;
  readonly peer: Peer | undefined;
}

export interface Identity {
  readonly caller: Caller;
  /** Whether the client proved to be the router; undefined when no secret is configured. */
  readonly fromRouter: boolean | undefined;
  readonly remoteAddress: string | undefined;
  /** Undefined when no setting requires it. */
  readonly peer: Peer | undefined;
}

/** Answers, throws or rejects as {@link Authenticator.authenticate}. */
export type Identify = (credentials: Credentials) => Identity | Promise<Identity>;

/** Tells who is calling. A router that presents its secret needs no user's token to read the schema. */
export function identifier(authenticator: Authenticator, routerSecrets: Pick<RouterSecrets, 'accept'>): Identify {
  return ({ authorization, routerSecret, remoteAddress, peer }) => {
    const fromRouter = routerSecrets.accept(routerSecret);
    const identity = (caller: Caller): Identity => ({ caller, fromRouter, remoteAddress, peer });
    try {
      const caller = authenticator.authenticate(authorization);
      return caller instanceof Promise ? caller.then(identity) : identity(caller);
    } catch (error) {
      if (authorization === undefined && fromRouter) return identity(router);
      throw error;
    }
  };
}

/** The credentials in the headers of a request. */
export function credentialsOf({ headers, socket, peer }: IncomingMessage): Credentials {
  return {
    authorization: headers.authorization,
    routerSecret: textOf(headers['x-gateway-router-secret']),
    remoteAddress: peer?.address ?? socket.remoteAddress,
    peer,
  };
}

/** The credentials in the parameters of `connection_init`, in any letter case; the headers of the upgrade supply the rest. */
export function credentialsOfSocket(
  parameters: Readonly<Record<string, unknown>> | undefined,
  request: IncomingMessage,
): Credentials {
  const given = new Map(Object.entries(parameters ?? {}).map(([name, value]) => [name.toLowerCase(), textOf(value)]));
  const shown = credentialsOf(request);
  return {
    ...shown,
    authorization: given.get('authorization') ?? shown.authorization,
    routerSecret: given.get('x-gateway-router-secret') ?? shown.routerSecret,
  };
}

/** A value that is not a string becomes an empty one, which is refused: it must not count as absent. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : '';
}

/**
 * Recognizes the router by a shared secret: the current one or, during a rotation, the previous one. A secret from a file
 * changes with the file. To rotate, write the old secret to the previous file and the new one to the current file, give the
 * new one to the router, and then empty the previous file; no process restarts.
 */
export class RouterSecrets {
  readonly #digests = new Map<'current' | 'previous', Buffer>();
  /** Whether any secret is configured; stays true after every one was withdrawn. */
  readonly #isConfigured: boolean;
  readonly #stops: readonly (() => void)[];

  constructor({ secret, previousSecret, secretFile, previousSecretFile }: Config['federation'], log: Logger) {
    const sources = [
      { which: 'current', secret, file: secretFile },
      { which: 'previous', secret: previousSecret, file: previousSecretFile },
    ] as const;
    this.#isConfigured = sources.some(({ secret, file }) => secret !== undefined || file !== undefined);
    this.#stops = sources.map(({ which, secret, file }) => {
      if (secret !== undefined) this.#digests.set(which, digestOf(secret.reveal()));
      if (file === undefined) return () => {};
      return watchSecretFile(file, {
        minLength: minRouterSecretLength,
        secret,
        onRotated: (rotated) => {
          this.#digests.set(which, digestOf(rotated.reveal()));
          log.info({ which }, 'the secret shared with the router was rotated');
        },
        ...(which === 'previous' && {
          onWithdrawn: () => {
            this.#digests.delete(which);
            log.info({ which }, 'the secret shared with the router was withdrawn');
          },
        }),
        onRefused: () =>
          log.warn(
            { which },
            'the secret shared with the router is too short in its file, or has a control character: the one in use stays',
          ),
      });
    });
  }

  /** Whether the client is the router; undefined when no secret is configured. Compares secrets in constant time. */
  accept(presented: string | undefined): boolean | undefined {
    if (!this.#isConfigured) return undefined;
    const digest = digestOf(presented ?? '');
    const matches = [...this.#digests.values()].map((each) => timingSafeEqual(digest, each));
    return presented !== undefined && matches.includes(true);
  }

  /** Stops watching the files. */
  stop(): void {
    for (const stop of this.#stops) stop();
  }
}

const digestOf = (text: string) => hash('sha256', text, 'buffer');
