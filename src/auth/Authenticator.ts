import { hash } from 'node:crypto';
import { anyone, type Caller, localDeveloper } from './caller.js';
import type { DeveloperKeys } from './developerKeys.js';
import { KeySet } from './keySet.js';
import { RememberedTokens } from './RememberedTokens.js';
import type { ReadFault } from './readKeySet.js';
import { maxTokenLength, type TokenPolicy, unauthenticated, verifyToken } from './verifyToken.js';

export type { Caller, Scope } from './caller.js';

export interface TrustedIssuer {
  /** The exact `iss` claim. Each issuer may be named once. */
  readonly issuer: string;
  readonly jwksUrl: string;
}

/** Who may call; see AUTH_MODE. */
export type AuthenticatorMode =
  | {
      readonly mode: 'jwt';
      readonly issuers: readonly TrustedIssuer[];
      readonly audience: readonly string[];
      readonly taxpayersClaim: string;
    }
  | { readonly mode: 'developer'; readonly developerKeys: DeveloperKeys }
  | { readonly mode: 'disabled' };

export type AuthenticatorOptions = AuthenticatorMode & {
  readonly now?: () => number;
  /** Called when a key set could not be read. */
  readonly onKeySetFailure?: (issuer: string, reason: ReadFault) => void;
};

/** The scheme in any case (RFC 9110 section 11.1), then the token. */
const scheme = /^bearer +/i;
/** RFC 6750 section 2.1. */
const tokenForm = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Tells who is calling from the Authorization header of a request or the parameters of a socket. */
export class Authenticator {
  /** The key sets read by this process, by issuer: for their age and for readiness. */
  readonly keySets: ReadonlyMap<string, KeySet>;
  readonly #policy: TokenPolicy | undefined;
  /** The caller without a token, where the mode has one. */
  readonly #unnamed: Caller | undefined;
  /** Only verified tokens are remembered: a made-up one must not push them out. */
  readonly #remembered = new RememberedTokens();
  readonly #verifying = new Map<string, Promise<Caller>>();

  constructor(options: AuthenticatorOptions) {
    const { now, onKeySetFailure } = options;
    const keySetOf = ({ issuer, jwksUrl }: TrustedIssuer): [string, KeySet] => [
      issuer,
      new KeySet({ url: jwksUrl, ...(now && { now }), onFailure: (reason) => onKeySetFailure?.(issuer, reason) }),
    ];
    this.keySets = new Map(options.mode === 'jwt' ? options.issuers.map(keySetOf) : []);
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
   * Answers at once for a remembered token, and with a promise otherwise: a request that needs no waiting should not wait.
   * Throws or rejects with UNAUTHENTICATED, or with AUTH_UNAVAILABLE while the issuer's keys were never read.
   */
  authenticate(authorization: string | undefined): Caller | Promise<Caller> {
    if (!this.#policy) return anyone;
    if (authorization === undefined && this.#unnamed) return this.#unnamed;
    if (authorization === undefined) throw unauthenticated('An Authorization header with a Bearer token is required');
    if (authorization.length > maxTokenLength + 'Bearer '.length) {
      throw unauthenticated('The access token is too long');
    }
    const prefix = scheme.exec(authorization);
    if (!prefix) throw malformedHeader();
    const token = authorization.slice(prefix[0].length);
    const digest = hash('sha256', token, 'base64');
    return this.#remembered.get(digest, this.#policy.now()) ?? this.#verify(token, digest, this.#policy);
  }

  /** Requests that bring the same unknown token at the same time share one verification. */
  #verify(token: string, digest: string, policy: TokenPolicy): Promise<Caller> {
    const shared = this.#verifying.get(digest);
    if (shared) return shared;
    if (!tokenForm.test(token)) throw malformedHeader();
    const verifying = verifyToken(token, policy)
      .then((verified) => {
        this.#remembered.add(digest, verified, policy.now());
        return verified.caller;
      })
      .finally(() => this.#verifying.delete(digest));
    this.#verifying.set(digest, verifying);
    return verifying;
  }
}

function policyOf(options: AuthenticatorOptions, issuers: ReadonlyMap<string, KeySet>): TokenPolicy | undefined {
  const now = options.now ?? Date.now;
  if (options.mode === 'disabled') return undefined;
  if (options.mode === 'developer') return { ...options.developerKeys.policy, now };
  return { issuers, audience: options.audience, taxpayersClaim: options.taxpayersClaim, now };
}

function malformedHeader(): Error {
  return unauthenticated('The Authorization header must be the word Bearer and one token');
}
