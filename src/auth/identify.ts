import type { IncomingMessage } from 'node:http';
import type { Authenticator } from './Authenticator.js';
import { type Caller, router } from './caller.js';
import type { RouterSecrets } from './RouterSecrets.js';

/** What a caller shows: headers of a request, or the same names in the parameters of a socket. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly routerSecret: string | undefined;
  readonly remoteAddress: string | undefined;
}

export interface Identity {
  readonly caller: Caller;
  /** Whether it proved to be the router; undefined when no such proof is configured. */
  readonly fromRouter: boolean | undefined;
  readonly remoteAddress: string | undefined;
}

/**
 * At once where there is nothing to wait for, as {@link Authenticator.authenticate}.
 *
 * @throws GatewayError UNAUTHENTICATED or AUTH_UNAVAILABLE, in either way
 */
export type Identify = (credentials: Credentials) => Identity | Promise<Identity>;

/** Tells who is calling. A router that presents its secret needs no user's token to read the schema. */
export function identifier(authenticator: Authenticator, routerSecrets: Pick<RouterSecrets, 'accept'>): Identify {
  return ({ authorization, routerSecret, remoteAddress }) => {
    const fromRouter = routerSecrets.accept(routerSecret);
    const identity = (caller: Caller): Identity => ({ caller, fromRouter, remoteAddress });
    try {
      const caller = authenticator.authenticate(authorization);
      return caller instanceof Promise ? caller.then(identity) : identity(caller);
    } catch (error) {
      if (authorization === undefined && fromRouter) return identity(router);
      throw error;
    }
  };
}

/** What the headers of a request show. */
export function credentialsOf({ headers, socket }: IncomingMessage): Credentials {
  return {
    authorization: headers.authorization,
    routerSecret: textOf(headers['x-gateway-router-secret']),
    remoteAddress: socket.remoteAddress,
  };
}

/** What the parameters of `connection_init` show, whose names come in any case; the headers of the socket fill in the rest. */
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

/** What is given but is no text is refused like an empty one: it must not count as absent. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : '';
}
