import * as z from 'zod';
import type { SealedStore } from '../cache/SealedStore.js';
import { credentialsRejected, GatewayError } from '../errors/errors.js';
import type { Endpoint } from './ResilientFetch.js';

const reasonSchema = z.enum(['rate-limited', 'credentials-rejected']);
type Reason = z.output<typeof reasonSchema>;

/** How long the fleet makes no call with client credentials that the service refused, in milliseconds. */
const credentialsCoolDownMs = 30_000;
/** Pause after a 429 without a believable `Retry-After`. */
const defaultSilenceSeconds = 5;
/** Shortest pause after a 429, even with `Retry-After: 0`: the service did ask for fewer calls. */
const shortestSilenceSeconds = 1;

interface CallGateOptions {
  readonly store: SealedStore;
  readonly onClosed: (endpoint: Endpoint, reason: Reason) => void;
}

/**
 * Keeps the whole fleet from calling an endpoint that asked for a pause (429) or refused our credentials (401, 403).
 * The shared store holds a mark per endpoint and credentials, so that a rotated secret is not held up by an old mark.
 */
export class CallGate {
  constructor(private readonly options: CallGateOptions) {}

  /** @throws GatewayError UPSTREAM_RATE_LIMITED or UPSTREAM_CREDENTIALS_REJECTED while the endpoint is closed */
  async pass(endpoint: Endpoint, credential: string): Promise<void> {
    const mark = await this.options.store.mark(nameOf(endpoint, credential));
    const reason = reasonSchema.safeParse(mark?.value).data;
    if (mark && reason) throw this.#refusal(reason, mark.leftMs);
  }

  /** Notes a 429 and returns the error for its caller. `retryAfterSeconds` is what the service asked for. */
  closeForRateLimit(endpoint: Endpoint, credential: string, retryAfterSeconds = defaultSilenceSeconds) {
    const seconds = Math.max(shortestSilenceSeconds, retryAfterSeconds);
    return this.#close([endpoint], credential, 'rate-limited', seconds * 1000);
  }

  /** A 401 is about the credentials and closes both endpoints that take them; a 403 may be about this endpoint alone. */
  closeForCredentials(endpoint: Endpoint, credential: string, status: 401 | 403) {
    const closed: readonly Endpoint[] = status === 401 ? ['taxpayerToken', 'createClientLink'] : [endpoint];
    return this.#close(closed, credential, 'credentials-rejected', credentialsCoolDownMs);
  }

  async #close(closed: readonly Endpoint[], credential: string, reason: Reason, forMs: number) {
    const { store, onClosed } = this.options;
    // A longer pause that was asked for earlier stays in force.
    const note = (endpoint: Endpoint) => store.setMark(nameOf(endpoint, credential), reason, forMs);
    await Promise.all(closed.map(note));
    for (const endpoint of closed) onClosed(endpoint, reason);
    return this.#refusal(reason, forMs);
  }

  #refusal(reason: Reason, leftMs: number): GatewayError {
    if (reason === 'credentials-rejected') return credentialsRejected('HTTP 401, or 403 to several callers');
    const retryAfterSeconds = Math.max(1, Math.ceil(leftMs / 1000));
    const message = 'The service asked for fewer calls';
    return new GatewayError('UPSTREAM_RATE_LIMITED', message, { retryAfterSeconds, reason: 'HTTP 429' });
  }
}

const nameOf = (endpoint: Endpoint, credential: string) => ['gate', endpoint, credential];
