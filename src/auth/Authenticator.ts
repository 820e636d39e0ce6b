import * as crypto from 'node:crypto';
import type fetch from 'node-fetch';
import type { Secret } from '../config/secret.js';
import { anyone, type Caller, localDeveloper } from './caller.js';
import { type DeveloperKeys, developerAudience, developerIssuer, developerTaxpayersClaim } from './developerKeys.js';
import { fixedKey, KeySet, type RefreshOutcome } from './keySet.js';
import { RememberedTokens } from './RememberedTokens.js';
import { maxTokenLength, type TokenPolicy, unauthenticated, verifyToken } from './verifyToken.js';

// The words of this file's signatures, for those who only ask who is calling.
export type { Caller, Scope } from './caller.js';

export interface TrustedIssuer {
  /** The exact `iss` claim. Each issuer may be named once. */
  readonly issuer: string;
  readonly jwksUrl: string;
}

/** Who may call; see AUTH_MODE. */
export type AuthenticatorOptions = AuthenticatorMode & {
  readonly now?: () => number;
  readonly fetch?: typeof fetch;
  /** Called after every read of a key set, for metrics and logs. */
  readonly onKeySetRefresh?: (issuer: string, outcome: RefreshOutcome) => void;
};

export type AuthenticatorMode =
  | {
      readonly mode: 'jwt';
      readonly issuers: readonly TrustedIssuer[];
      readonly audience: readonly string[];
      readonly taxpayersClaim: string;
    }
  | { readonly mode: 'developer'; readonly developerKeys: DeveloperKeys }
  | { readonly mode: 'disabled' };

const rememberMs = 300_000;
/** In any case, as RFC 9110 section 11.1 has it. */
const scheme = /^bearer +/i;
const usualScheme = 'Bearer ';
/** RFC 6750 section 2.1. */
const tokenForm = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Tells who is calling from the Authorization header of a request or the parameters of a socket. */
export class Authenticator {
  /** The key sets read by this process, by issuer: for their age and for readiness. */
  readonly keySets: ReadonlyMap<string, KeySet>;
  readonly #policy: TokenPolicy | undefined;
  /** The caller without a token, where the mode has one. */
  readonly #unnamed: Caller | undefined;
  /** By digest, so that no token is kept. Only verified tokens are: a made-up one must not push them out. */
  readonly #remembered = new RememberedTokens();
  readonly #verifying = new Map<string, Promise<Caller>>();

  constructor(options: AuthenticatorOptions) {
    this.keySets = new Map(options.mode === 'jwt' ? options.issuers.map((trusted) => keySetOf(trusted, options)) : []);
    this.#policy = policyOf(options, this.keySets);
    this.#unnamed = { jwt: undefined, developer: localDeveloper, disabled: anyone }[options.mode];
  }

  /** Reads the key sets and keeps them fresh in the background. */
  start(): void {
    for (const keySet of this.keySets.values()) keySet.start();
  }

  stop(): void {
    for (const keySet of this.keySets.values()) keySet.stop();
  }

  /** Why nobody can be let in: no key to decide by was ever read. */
  reasonNotReady(): string | undefined {
    const unread = [...this.keySets.values()].every((keySet) => keySet.keysAgeMs === undefined);
    return this.keySets.size > 0 && unread ? 'no key of the identity provider was read yet' : undefined;
  }

  /**
   * Answers at once for a token that was verified in the last five minutes, and with a promise otherwise: a request that
   * needs no waiting should not wait. Throws or rejects with UNAUTHENTICATED, or with AUTH_UNAVAILABLE while the keys to
   * decide were never read.
   */
  authenticate(authorization: string | undefined): Caller | Promise<Caller> {
    if (!this.#policy) return anyone;
    if (authorization === undefined && this.#unnamed) return this.#unnamed;
    if (authorization === undefined) throw unauthenticated('An Authorization header with a Bearer token is required');
    if (authorization.length > maxTokenLength + usualScheme.length)
      throw unauthenticated('The access token is too long');
    const token = afterScheme(authorization);
    const digest = sha256(token);
    return this.#recall(digest, this.#policy.now()) ?? this.#verify(token, digest, this.#policy);
  }

  #recall(digest: string, now: number): Caller | undefined {
    const known = this.#remembered.get(digest);
    if (!known) return undefined;
    if (known.source.version === known.version && now >= known.validFrom && now < known.until) return known.caller;
    this.#remembered.delete(digest);
    return undefined;
  }

  /** Requests that bring the same unknown token at the same time share one verification. */
  #verify(token: string, digest: string, policy: TokenPolicy): Promise<Caller> {
    const shared = this.#verifying.get(digest);
    if (shared) return shared;
    if (!tokenForm.test(token)) throw malformedHeader();
    const verifying = verifyToken(token, policy)
      .then((verified) => {
        const until = Math.min(verified.caller.expiresAt, policy.now() + rememberMs);
        this.#remembered.set(digest, { ...verified, until });
        return verified.caller;
      })
      .finally(() => this.#verifying.delete(digest));
    this.#verifying.set(digest, verifying);
    return verifying;
  }
}

/**
 * Whether a request presents the secret shared with the router, the current one or the one before a rotation. Takes the
 * same time whatever is wrong with it. False when no secret is set.
 */
export function routerSecretMatches(
  header: string | undefined,
  current: Secret | undefined,
  previous: Secret | undefined,
): boolean {
  const presented = digestOf(header ?? '');
  const matches = [current, previous].map(
    (secret) => crypto.timingSafeEqual(presented, digestOf(secret?.reveal() ?? '')) && secret !== undefined,
  );
  return header !== undefined && matches.includes(true);
}

function keySetOf({ issuer, jwksUrl }: TrustedIssuer, options: AuthenticatorOptions): [string, KeySet] {
  const { now, fetch, onKeySetRefresh } = options;
  const keySet = new KeySet({
    url: jwksUrl,
    ...(now && { now }),
    ...(fetch && { fetch }),
    ...(onKeySetRefresh && { onRefresh: (outcome) => onKeySetRefresh(issuer, outcome) }),
  });
  return [issuer, keySet];
}

function policyOf(options: AuthenticatorOptions, keySets: ReadonlyMap<string, KeySet>): TokenPolicy | undefined {
  const now = options.now ?? Date.now;
  switch (options.mode) {
    case 'jwt':
      return { issuers: keySets, audience: options.audience, taxpayersClaim: options.taxpayersClaim, now };
    case 'developer':
      return {
        issuers: new Map([[developerIssuer, fixedKey(options.developerKeys.publicKey)]]),
        audience: [developerAudience],
        taxpayersClaim: developerTaxpayersClaim,
        now,
      };
    case 'disabled':
      return undefined;
  }
}

/** What may be a token; only one that is not remembered is looked at for more. This runs for every request. */
function afterScheme(authorization: string): string {
  if (authorization.startsWith(usualScheme) && authorization[usualScheme.length] !== ' ') {
    return authorization.slice(usualScheme.length);
  }
  const found = scheme.exec(authorization)?.[0];
  if (found === undefined) throw malformedHeader();
  return authorization.slice(found.length);
}

function malformedHeader(): Error {
  return unauthenticated('The Authorization header must be the word Bearer and one token');
}

/** In one step where Node.js can (20.12), which is twice as fast: this runs for every request. */
const sha256: (text: string) => string = crypto.hash
  ? (text) => crypto.hash('sha256', text, 'base64')
  : (text) => crypto.createHash('sha256').update(text).digest('base64');

function digestOf(text: string): Buffer {
  return crypto.createHash('sha256').update(text).digest();
}
