import type { Secret } from '../config/secret.js';
import { knownOf, type TokenEntry } from './tokenAnswer.js';

/** A taxpayer's token to be used. Two credentials of one taxpayer are the same if and only if their versions are. */
export interface Credential {
  readonly accessToken: Secret;
  readonly version: string;
  /** When it was fetched, by the monotonic clock. */
  readonly readAt: number;
  /** When its fetch began, by the monotonic clock, if this process fetched it. */
  readonly startedAt: number | undefined;
  /** When a call of this process was first refused with it, by the monotonic clock. */
  refusedAt?: number;
}

/** Gives each entry one credential object, so that everybody who uses it sees `refusedAt`. */
export class Credentials {
  readonly #known = new WeakMap<TokenEntry, Credential>();

  /** @throws GatewayError NOT_FOUND */
  of(entry: TokenEntry): Credential {
    const known = this.#known.get(entry);
    if (known) return known;
    const { value, version, readAt, startedAt } = entry;
    const credential = { accessToken: knownOf(value).record.accessToken, version, readAt, startedAt };
    this.#known.set(entry, credential);
    return credential;
  }
}

/**
 * Whether `credential` was requested after `before` was refused; one requested earlier may have been replaced too. For one
 * from another process: whether it was fetched after `beganAt`, when the call began.
 */
export function isSuccessor(credential: Credential, before: Credential, beganAt: number): boolean {
  const { startedAt, readAt } = credential;
  return startedAt === undefined ? readAt >= beganAt : startedAt >= (before.refusedAt ?? 0);
}
