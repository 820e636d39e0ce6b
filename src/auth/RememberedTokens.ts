import { LRUCache } from 'lru-cache';
import type { Caller } from './caller.js';
import type { VerifiedToken } from './verifyToken.js';

const maxTokens = 10_000;
/** More tokens of one caller push out that caller's oldest, and nobody else's. */
const maxPerCaller = 50;
const rememberMs = 300_000;

interface RememberedToken extends VerifiedToken {
  /** In milliseconds since the epoch. */
  readonly until: number;
}

/** The callers of tokens verified in the last five minutes, by the token's digest. */
export class RememberedTokens {
  readonly #tokens = new LRUCache<string, RememberedToken>({
    max: maxTokens,
    dispose: ({ caller: { key } }, digest) => {
      const digests = this.#digests.get(key);
      digests?.delete(digest);
      if (digests?.size === 0) this.#digests.delete(key);
    },
  });
  /** By caller key, the oldest first. */
  readonly #digests = new Map<string, Set<string>>();

  /** Undefined also for a token that would no longer pass: its time is over, or its issuer's keys have changed. */
  get(digest: string, now: number): Caller | undefined {
    const known = this.#tokens.get(digest);
    if (!known) return undefined;
    if (known.source.version === known.version && now >= known.validFrom && now < known.until) return known.caller;
    this.#tokens.delete(digest);
    return undefined;
  }

  add(digest: string, token: VerifiedToken, now: number): void {
    const { key, expiresAt } = token.caller;
    this.#tokens.delete(digest);
    const held = this.#digests.get(key) ?? new Set();
    const [oldest] = held;
    if (oldest !== undefined && held.size === maxPerCaller) this.#tokens.delete(oldest);
    this.#tokens.set(digest, { ...token, until: Math.min(expiresAt, now + rememberMs) });
    this.#digests.set(key, held.add(digest));
  }
}
