import { hash } from 'node:crypto';
import { GatewayError, unauthenticated } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import { anyone, type Caller, localDeveloper } from './caller.js';
import type { DeveloperKeys } from './developerKeys.js';
import type { KeyPlace } from './discovery.js';
import { KeySet } from './KeySet.js';
import type { AgentFor, ReadFault } from './readJson.js';
import { boundRefused, type TokenPolicy, type TrustedIssuer, type VerifiedToken, verifyToken } from './verifyToken.js';

/** Who may call; see AUTH_MODE. */
type Mode =
  | ({
      readonly mode: 'jwt';
      /** Each issuer may be named once. */
      readonly issuers: readonly (KeyPlace & Pick<TrustedIssuer, 'audience'>)[];
      /** See AUTH_KEYS_MAX_AGE_SECONDS. */
      readonly keysMaxAgeMs: number;
    } & Pick<TokenPolicy, 'rights' | 'tokenTypes'>)
  | { readonly mode: 'developer'; readonly developerKeys: DeveloperKeys }
  | { readonly mode: 'disabled' };

export type AuthenticatorOptions = Mode & {
  /** As in {@link TokenPolicy}. */
  readonly decisionClaims?: readonly string[] | undefined;
  /** HTTP agents for reading key sets. Default: Node's own. */
  readonly agentFor?: AgentFor;
  /** Called when a key set could not be read. */
  readonly onKeySetFailure?: (issuer: string, fault: ReadFault, cause: string) => void;
  /** Called when a key set was read. */
  readonly onKeySetRead?: (issuer: string) => void;
};

/** The scheme in any case (RFC 9110 section 11.1), then the token. */
const scheme = /^bearer +/i;
/** RFC 6750 section 2.1. */
const tokenForm = /^[A-Za-z0-9\-._~+/]+=*$/;

/** How many refused tokens are cached, and how long each is refused again without being verified. */
const maxRefused = 1000;
const refuseAgainMs = 1000;

const malformedHeader = 'The Authorization header must be the word Bearer and one token';

/** Tells who is calling from the Authorization header of a request or the parameters of a socket. */
export class Authenticator {
  /** The key sets read by this process, by issuer: for their age and for readiness. */
  readonly keySets: ReadonlyMap<string, KeySet>;
  readonly #policy: TokenPolicy | undefined;
  /** The caller of requests without a token, in a mode that allows them. */
  readonly #unnamed: Caller | undefined;
  /** Holds verified tokens only: made-up tokens must not evict them. */
  readonly #remembered = new RememberedTokens();
  /** By digest. A flood of one bad token must not cost a verification each time. */
  readonly #refused = new BoundedCache<{ readonly error: GatewayError; readonly at: number }>({ max: maxRefused });
  readonly #verifying = new Map<string, Promise<VerifiedToken>>();
  readonly #digests = new LatestDigests();

  constructor(options: AuthenticatorOptions) {
    const { onKeySetFailure, onKeySetRead, agentFor } = options;
    const { issuers, keysMaxAgeMs: maxAgeMs } = options.mode === 'jwt' ? options : { issuers: [], keysMaxAgeMs: 0 };
    this.keySets = new Map(
      issuers.map(({ issuer, jwksUrl }) => [
        issuer,
        new KeySet({
          ...{ issuer, jwksUrl, maxAgeMs, agentFor },
          onFailure: (...failure) => onKeySetFailure?.(issuer, ...failure),
          onRead: () => onKeySetRead?.(issuer),
        }),
      ]),
    );
    this.#policy = policyOf(options, this.keySets);
    this.#unnamed = options.mode === 'developer' ? localDeveloper : undefined;
  }

  /** Reads the key sets and keeps them fresh. */
  start(): void {
    for (const keySet of this.keySets.values()) keySet.start();
  }

  stop(): void {
    for (const keySet of this.keySets.values()) keySet.stop();
  }

  /** Why no caller can be authenticated: no key was ever read, or the last read is too long ago. */
  reasonNotReady(): string | undefined {
    const isUnusable = [...this.keySets.values()].every((keySet) => keySet.usableForMs === 0);
    return this.keySets.size > 0 && isUnusable ? 'there is no usable key of the identity provider' : undefined;
  }

  /**
   * Returns synchronously for a remembered token: a request that needs no waiting should not wait.
   * Throws or rejects with UNAUTHENTICATED, or with AUTH_UNAVAILABLE without usable keys of the issuer.
   */
  authenticate(authorization: string | undefined): Caller | Promise<Caller> {
    if (!this.#policy) return anyone;
    if (authorization === undefined && this.#unnamed) return this.#unnamed;
    if (authorization === undefined) throw unauthenticated('An Authorization header with a Bearer token is required');
    const prefix = scheme.exec(authorization);
    if (!prefix) throw unauthenticated(/^dpop /i.test(authorization) ? boundRefused : malformedHeader);
    const token = authorization.slice(prefix[0].length);
    const digest = this.#digests.of(token);
    const now = Date.now();
    const known = this.#remembered.get(digest, now);
    if (known !== undefined) return known.caller;
    const refused = this.#refused.get(digest);
    if (refused !== undefined && now >= refused.at && now < refused.at + refuseAgainMs) throw refused.error;
    return this.#verify(token, digest, this.#policy).then(({ caller }) => caller);
  }

  /** Requests that bring the same unknown token at the same time share one verification. */
  #verify(token: string, digest: string, policy: TokenPolicy): Promise<VerifiedToken> {
    const shared = this.#verifying.get(digest);
    if (shared) return shared;
    if (!tokenForm.test(token)) throw unauthenticated(malformedHeader);
    const verifying = verifyToken(token, policy)
      .then((verified) => this.#remembered.add(digest, verified, Date.now()))
      .catch((error: unknown) => {
        const isRefused = error instanceof GatewayError && error.code === 'UNAUTHENTICATED';
        if (isRefused) this.#refused.set(digest, { error, at: Date.now() });
        throw error;
      })
      .finally(() => this.#verifying.delete(digest));
    this.#verifying.set(digest, verifying);
    return verifying;
  }
}

function policyOf(options: AuthenticatorOptions, keySets: ReadonlyMap<string, KeySet>): TokenPolicy | undefined {
  const { mode, decisionClaims } = options;
  if (mode === 'disabled') return undefined;
  if (mode === 'developer') return { ...options.developerKeys.policy, decisionClaims };
  const { rights, tokenTypes } = options;
  const issuers = new Map(
    options.issuers.map(({ issuer, audience }) => [issuer, { keys: keySets.get(issuer) as KeySet, audience }]),
  );
  return { issuers, rights, tokenTypes, decisionClaims };
}

const places = 256;
/** Tokens with more characters are not cached. */
const longestKept = 4096;

/** Digests of tokens. Caches recent ones: callers send one token many times, and comparing is cheaper than hashing. */
class LatestDigests {
  readonly #latest: { readonly token: string; readonly digest: string }[] = [];

  of(token: string): string {
    const end = token.length;
    // The end of a token is its signature: any two characters of it tell most tokens apart.
    const place = (token.charCodeAt(end - 2) * 31 + token.charCodeAt(end - 9)) % places || 0;
    const known = this.#latest[place];
    if (known?.token === token) return known.digest;
    const digest = hash('sha256', token, 'base64');
    if (end <= longestKept) this.#latest[place] = { token, digest };
    return digest;
  }
}

const maxTokens = 10_000;
/** Beyond this number, new tokens of one caller evict that caller's oldest ones only. */
const maxPerCaller = 50;
const rememberMs = 300_000;

/** The callers of tokens verified in the last five minutes, by the token's digest. */
class RememberedTokens {
  /** `until` is in milliseconds since the epoch. */
  readonly #tokens = new BoundedCache<VerifiedToken & { readonly until: number }>({
    max: maxTokens,
    dispose: ({ caller: { key } }, digest) => {
      const digests = this.#digests.get(key);
      digests?.delete(digest);
      if (digests?.size === 0) this.#digests.delete(key);
    },
  });
  /** By caller key, the oldest first. */
  readonly #digests = new Map<string, Set<string>>();

  /** Also undefined for a token to verify again: it is outside its validity, or its issuer's keys have changed. */
  get(digest: string, now: number): VerifiedToken | undefined {
    const known = this.#tokens.get(digest);
    if (!known) return undefined;
    if (known.source.version === known.version && now >= known.validFrom && now < known.until) return known;
    this.#tokens.delete(digest);
    return undefined;
  }

  add(digest: string, token: VerifiedToken, now: number): VerifiedToken {
    const { key, expiresAt } = token.caller;
    const held = this.#digests.get(key) ?? new Set();
    for (const oldest of held) {
      const isOver = (this.#tokens.peek(oldest)?.until ?? 0) <= now;
      if (!isOver && held.size < maxPerCaller) break;
      this.#tokens.delete(oldest);
    }
    const until = Math.min(expiresAt, now + Math.min(rememberMs, token.source.usableForMs));
    this.#tokens.set(digest, { ...token, until });
    this.#digests.set(key, held.add(digest));
    return token;
  }
}
