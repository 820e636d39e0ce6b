import { z } from 'zod';
import type { SealedStore } from '../cache/SealedStore.js';
import { credentialsRejected, GatewayError } from '../errors/errors.js';
import type { Endpoint } from './ResilientFetch.js';

const block = z.object({
  reason: z.enum(['rate-limited', 'credentials-rejected']),
  until: z.number(),
});
type Block = z.output<typeof block>;

/** The service refused our client credentials: nobody of the fleet asks with them again for this long, in milliseconds. */
export const credentialsCoolDownMs = 30_000;

/** Silence after a 429 without a believable `Retry-After`, in seconds. */
export const defaultSilenceSeconds = 5;
/** Silence after any 429, in seconds: a service that asks for fewer calls and for no pause still means fewer. */
export const shortestSilenceSeconds = 1;

export interface CallGateOptions {
  readonly store: SealedStore;
  readonly now?: () => number;
  readonly onClosed?: (endpoint: Endpoint, reason: Block['reason']) => void;
}

/**
 * Keeps the whole fleet from calling an endpoint that asked for silence (429) or refused our credentials (401, 403).
 * The mark is kept in the shared store, under the credentials it is about: a rotated secret is not held up by it.
 */
export class CallGate {
  readonly #options: CallGateOptions;
  readonly #now: () => number;

  constructor(options: CallGateOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** @throws GatewayError UPSTREAM_RATE_LIMITED or UPSTREAM_CREDENTIALS_REJECTED while the endpoint is closed */
  async pass(endpoint: Endpoint, credential: string): Promise<void> {
    const mark = await this.#options.store.mark(keyOf(endpoint, credential));
    if (mark === undefined) return;
    const stored = block.safeParse(mark);
    if (!stored.success || stored.data.until <= this.#now()) return;
    throw this.#refusal(stored.data);
  }

  /** Notes a 429 and returns the error for its caller. `retryAfterSeconds` is what the service asked for. */
  async closeForRateLimit(
    endpoint: Endpoint,
    credential: string,
    retryAfterSeconds: number | undefined,
  ): Promise<GatewayError> {
    const silenceMs = Math.max(shortestSilenceSeconds, retryAfterSeconds ?? defaultSilenceSeconds) * 1000;
    return this.#close([endpoint], credential, { reason: 'rate-limited', until: this.#now() + silenceMs }, silenceMs);
  }

  /**
   * Notes that the service refused the client credentials and returns the error for the caller. A 401 is about the
   * credentials and closes both endpoints that take them; a 403 may be about this endpoint and closes it alone.
   */
  async closeForCredentials(endpoint: Endpoint, credential: string, status: 401 | 403): Promise<GatewayError> {
    const closed: readonly Endpoint[] = status === 401 ? ['taxpayerToken', 'createClientLink'] : [endpoint];
    const until = this.#now() + credentialsCoolDownMs;
    return this.#close(closed, credential, { reason: 'credentials-rejected', until }, credentialsCoolDownMs);
  }

  async #close(closed: readonly Endpoint[], credential: string, mark: Block, ttlMs: number): Promise<GatewayError> {
    await Promise.all(closed.map((endpoint) => this.#options.store.set(keyOf(endpoint, credential), mark, ttlMs)));
    for (const endpoint of closed) this.#options.onClosed?.(endpoint, mark.reason);
    return this.#refusal(mark);
  }

  #refusal(mark: Block): GatewayError {
    const retryAfterSeconds = Math.max(1, Math.ceil((mark.until - this.#now()) / 1000));
    return mark.reason === 'rate-limited'
      ? new GatewayError('UPSTREAM_RATE_LIMITED', 'The service asked for fewer calls', { retryAfterSeconds })
      : credentialsRejected();
  }
}

function keyOf(endpoint: Endpoint, credential: string): readonly string[] {
  return ['gate', endpoint, credential];
}
