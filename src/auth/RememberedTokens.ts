import { LRUCache } from 'lru-cache';
import type { VerifiedToken } from './verifyToken.js';

const maxRemembered = 10_000;
/** A caller uses a token at a time, or one for each of its processes; more push out its own and nobody else's. */
const maxPerCaller = 50;

/** A token that was verified, and until when it need not be again, in milliseconds since the epoch. */
export type RememberedToken = VerifiedToken & { readonly until: number };

/** The tokens verified lately, by digest. */
export class RememberedTokens {
  readonly #byDigest = new LRUCache<string, RememberedToken>({
    max: maxRemembered,
    dispose: ({ caller }, digest) => this.#forget(caller.key, digest),
  });
  /** By caller, the oldest first. */
  readonly #digests = new Map<string, Set<string>>();

  get(digest: string): RememberedToken | undefined {
    return this.#byDigest.get(digest);
  }

  /** Forgets the caller's oldest token where it has too many. */
  set(digest: string, token: RememberedToken): void {
    this.delete(digest);
    const { key } = token.caller;
    const held = this.#digests.get(key);
    const [oldest] = held ?? [];
    if (oldest !== undefined && held?.size === maxPerCaller) this.delete(oldest);
    this.#byDigest.set(digest, token);
    this.#digests.set(key, (this.#digests.get(key) ?? new Set()).add(digest));
  }

  delete(digest: string): void {
    this.#byDigest.delete(digest);
  }

  #forget(callerKey: string, digest: string): void {
    const digests = this.#digests.get(callerKey);
    digests?.delete(digest);
    if (digests?.size === 0) this.#digests.delete(callerKey);
  }
}
