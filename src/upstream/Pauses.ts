import type { SealedStore } from '../cache/SealedStore.js';
import { credentialsRejected, GatewayError } from '../errors/errors.js';
import { clientEndpoints, type Endpoint } from './ResilientFetch.js';

type Reason = 'rate-limited' | 'credentials-rejected';

/** How long the fleet makes no call with client credentials that the service refused, in milliseconds. */
const credentialsPauseMs = 30_000;
/** Pause after a 429 without a believable `Retry-After`. */
const defaultPauseSeconds = 5;
/** Shortest pause after a 429, even with `Retry-After: 0`: the service did ask for fewer calls. */
const shortestPauseSeconds = 1;

/**
 * Keeps the whole fleet from calling an endpoint that asked for a pause (429) or refused our credentials (401). The shared
 * store holds a cool-down for each endpoint and secret (by its fingerprint): the pause of an old secret does not hold up a new one.
 */
export class Pauses {
  constructor(
    private readonly store: SealedStore,
    private readonly onPause: (endpoint: Endpoint, reason: Reason) => void,
  ) {}

  /** @throws GatewayError UPSTREAM_RATE_LIMITED or UPSTREAM_CREDENTIALS_REJECTED during a pause */
  async check(endpoint: Endpoint, fingerprint: string): Promise<void> {
    const coolDown = await this.store.coolDown(nameOf(endpoint, fingerprint));
    if (coolDown !== undefined) throw refusalOf(coolDown.value as Reason, coolDown.leftMs);
  }

  /** Begins a pause of the endpoint, and returns the error for the caller. `seconds` is what the service asked for. */
  beginAfter429(endpoint: Endpoint, fingerprint: string, seconds = defaultPauseSeconds): Promise<GatewayError> {
    return this.#begin([endpoint], fingerprint, 'rate-limited', 1000 * Math.max(shortestPauseSeconds, seconds));
  }

  /** Begins a pause of the endpoints that take the client credentials, and returns the error for the caller. */
  beginAfter401(fingerprint: string): Promise<GatewayError> {
    return this.#begin(clientEndpoints, fingerprint, 'credentials-rejected', credentialsPauseMs);
  }

  async #begin(paused: readonly Endpoint[], fingerprint: string, reason: Reason, forMs: number) {
    // A longer pause that was asked for earlier stays in force.
    await Promise.all(paused.map((endpoint) => this.store.beginCoolDown(nameOf(endpoint, fingerprint), reason, forMs)));
    for (const endpoint of paused) this.onPause(endpoint, reason);
    return refusalOf(reason, forMs);
  }
}

const nameOf = (endpoint: Endpoint, fingerprint: string) => ['pause', endpoint, fingerprint];

function refusalOf(reason: Reason, leftMs: number): GatewayError {
  if (reason === 'credentials-rejected') return credentialsRejected('HTTP 401');
  const retryAfterSeconds = Math.ceil(leftMs / 1000);
  const message = 'The service asked for fewer calls';
  return new GatewayError('UPSTREAM_RATE_LIMITED', message, { retryAfterSeconds, reason: 'HTTP 429' });
}
