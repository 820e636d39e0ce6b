import type { Secret } from '../config/secret.js';
import { recordOf, type TokenEntry } from './tokenAnswer.js';

/** A taxpayer's token to be used. Two of one taxpayer are the same exactly when their versions are. */
export interface Credential {
  readonly accessToken: Secret;
  readonly version: string;
  /** Epoch milliseconds. */
  readonly fetchedAt: number;
  /** When its fetch began, by the monotonic clock, if this process fetched it. */
  readonly startedAt: number | undefined;
  /** When a call of this process was first refused with it, by the monotonic clock. */
  refusedAt?: number;
}

/** How far the clock of another machine may be off, in milliseconds: more than for jobs, because a token costs a counted call. */
export const skewMs = 10_000;

/** The credential of each entry: always the same one, so that all who use it learn of its refusal. */
export class Credentials {
  readonly #known = new WeakMap<TokenEntry, Credential>();

  /** @throws GatewayError NOT_FOUND */
  of(entry: TokenEntry): Credential {
    const known = this.#known.get(entry);
    if (known) return known;
    const { value, version, fetchedAt, startedAt } = entry;
    const credential = { accessToken: recordOf(value).accessToken, version, fetchedAt, startedAt };
    this.#known.set(entry, credential);
    return credential;
  }
}

/**
 * Whether `credential` was asked for after `before` had been refused: one that was asked for earlier may have been replaced
 * as well. For one that another process fetched, that is after `beganAt`, the wall-clock time when the call began.
 */
export function isSuccessor(credential: Credential, before: Credential, beganAt: number): boolean {
  const { startedAt, fetchedAt } = credential;
  return startedAt === undefined ? fetchedAt + skewMs >= beganAt : startedAt >= (before.refusedAt ?? 0);
}
