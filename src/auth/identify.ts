import { hash, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../config/Secret.js';
import type { Authenticator } from './Authenticator.js';
import { type Caller, router } from './caller.js';

export interface Identity {
  readonly caller: Caller;
  /** Whether the client proved to be the router; undefined when no secret is configured. */
  readonly fromRouter: boolean | undefined;
}

/**
 * Takes headers of a request, or parameters of a socket, whose names are in lower case. Answers, throws or rejects as
 * {@link Authenticator.authenticate}.
 */
export type Identify = (shown: Readonly<Record<string, unknown>>) => Identity | Promise<Identity>;

/**
 * Tells who is calling. A router that presents one of its secrets, of which there are several while they are rotated, needs
 * no user's token to read the schema.
 */
export function identifyBy(authenticator: Authenticator, secrets: Secret | undefined): Identify {
  return (shown) => {
    const fromRouter = isRouter(textOf(shown['x-gateway-router-secret']), secrets);
    const identity = (caller: Caller): Identity => ({ caller, fromRouter });
    const caller = authenticator.authenticate(textOf(shown['authorization']), fromRouter ? router : undefined);
    return caller instanceof Promise ? caller.then(identity) : identity(caller);
  };
}

/** A value that is not a string becomes an empty one, which is refused: it must not count as absent. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : '';
}

/** Whether the client is the router; undefined when no secret is configured. Compares secrets in constant time. */
function isRouter(presented: string | undefined, secrets: Secret | undefined): boolean | undefined {
  if (secrets === undefined) return undefined;
  if (presented === undefined) return false;
  const digest = digestOf(presented);
  const all = secrets.reveal().split(',');
  return all.map((secret) => timingSafeEqual(digest, digestOf(secret))).includes(true);
}

const digestOf = (text: string) => hash('sha256', text, 'buffer');
