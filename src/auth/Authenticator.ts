import { hash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Config } from '../config/config.js';
import type { Secret } from '../config/Secret.js';
import { authUnavailable, tokenRequired, unauthenticated } from '../errors/errors.js';
import { heapPart } from '../process/memory.js';
import { anyone, type Caller, router } from './caller.js';
import { developerPolicy } from './developerPolicy.js';
import { boundTokenRefused, type TokenPolicy, type VerifiedToken, verifyToken } from './verifyToken.js';

/** The scheme in any case (RFC 9110 section 11.1), then the token. */
const scheme = /^bearer +/i;
/** RFC 6750 section 2.1. */
const tokenForm = /^[A-Za-z0-9\-._~+/]+=*$/;
/** Most verified tokens that are remembered, and most characters of them together. */
const maxTokens = 10_000;
const maxCharacters = heapPart(16, 1 << 24);
/**
 * Most bytes of requests that wait for the verification of their tokens. Without this limit, anybody could make any number of
 * them wait while an identity provider does not answer: a request goes on waiting when its connection is gone.
 */
const mostWaitingBytes = heapPart(16);
/** Bytes that such a request takes, besides 4 for each character of its headers. */
const requestBytes = 4096;
/** Bytes for each character of a token's header, which is kept parsed meanwhile, twice: anybody may send `{},{},{}`. */
const bytesOfParsed = 48;
const malformedHeader = 'Authorization must be the word Bearer and one token';

export interface Identity {
  readonly caller: Caller;
  /** Whether the client proved to be the router; undefined when no secret is configured. */
  readonly fromRouter: boolean | undefined;
}

/**
 * Tells who is calling. A router that presents one of its secrets, of which there are several while they are rotated, needs no
 * user's token to read the schema.
 */
export class Authenticator {
  readonly #policy: TokenPolicy;
  /** By token. Requests that bring a token while it is verified share the verification; a failed one is not kept. */
  readonly #verified = new LRUCache<string, VerifiedToken>({
    max: maxTokens,
    maxSize: maxCharacters,
    sizeCalculation: (_verified, token) => token.length,
    fetchMethod: (token) => verifyToken(token, this.#policy),
    ignoreFetchAbort: true, // a verification that is evicted still answers those who wait for it
  });
  #waitingBytes = 0;

  constructor(config: Config, keySets: TokenPolicy['keySets']) {
    this.#policy = { ...config, keySets, ...(config.AUTH_MODE === 'developer' && developerPolicy) };
  }

  /**
   * Takes headers of a request, or parameters of a socket, whose names are in lower case. Returns synchronously for a verified
   * token: a request that needs no waiting should not wait. Throws or rejects with UNAUTHENTICATED, or with AUTH_UNAVAILABLE
   * without usable keys of the issuer and when too many wait.
   */
  identify(presented: Readonly<Record<string, unknown>>): Identity | Promise<Identity> {
    const fromRouter = isRouter(textOf(presented['x-gateway-router-secret']), this.#policy.FEDERATION_SHARED_SECRET);
    const caller = this.#callerOf(presented, fromRouter);
    return caller instanceof Promise ? caller.then((late) => ({ caller: late, fromRouter })) : { caller, fromRouter };
  }

  #callerOf(presented: Readonly<Record<string, unknown>>, fromRouter: boolean | undefined): Caller | Promise<Caller> {
    const mode = this.#policy.AUTH_MODE;
    const authorization = textOf(presented['authorization']);
    if (authorization === undefined || mode === 'disabled') {
      if (mode !== 'jwt') return anyone;
      if (fromRouter) return router;
      throw unauthenticated(tokenRequired);
    }
    const prefix = scheme.exec(authorization);
    if (!prefix) throw unauthenticated(/^dpop /i.test(authorization) ? boundTokenRefused : malformedHeader);
    const token = authorization.slice(prefix[0].length);
    const known = this.#verified.get(token);
    if (known?.isGood()) return known.caller;
    if (!tokenForm.test(token)) throw unauthenticated(malformedHeader);
    const bytes = requestBytes + 4 * JSON.stringify(presented).length + bytesOfParsed * token.indexOf('.');
    return this.#verify(token, bytes);
  }

  /** `bytes`: what the request takes while it waits. */
  async #verify(token: string, bytes: number): Promise<Caller> {
    if (this.#waitingBytes + bytes > mostWaitingBytes) {
      throw authUnavailable(
        'Too many access tokens are being verified at the moment',
        `${mostWaitingBytes} bytes wait`,
      );
    }
    this.#waitingBytes += bytes;
    try {
      const { caller } = await this.#verified.forceFetch(token, { forceRefresh: true });
      return caller;
    } finally {
      this.#waitingBytes -= bytes;
    }
  }
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
