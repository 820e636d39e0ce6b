import { setTimeout as delay } from 'node:timers/promises';
import { stringify as stableStringify } from 'safe-stable-stringify';
import { z } from 'zod';
import { GatewayError } from '../errors.js';
import type { SealedStore } from './SealedStore.js';
import type { TaxpayerService } from './TaxpayerService.js';
import type { ClientLink, ClientLinkRequest } from './wire.js';

export interface CreatedLink {
  readonly link: ClientLink;
  /** The link had been created before, with the same key and input. */
  readonly replayed: boolean;
}

export interface ClientLinksOptions {
  readonly service: TaxpayerService;
  readonly store: SealedStore;
  /** Keyed hashes of inputs, so that inputs are compared without being kept; also across a rotation of the key. */
  readonly digests: {
    readonly of: (text: string) => string;
    readonly match: (text: string, digest: string) => boolean;
  };
  /** Longest a creation can be under way, in milliseconds; one that is older and has no result never will. */
  readonly workMs: number;
  readonly now?: () => number;
  readonly onOutcome?: (outcome: 'created' | 'replayed' | 'unknown' | 'conflict' | 'failed') => void;
}

/** How long a key is remembered, in milliseconds. */
export const idempotencyTtlMs = 24 * 3_600_000;

/** Pauses between two looks at a creation that somebody else has under way, in milliseconds. */
const lookAgainMs = 50;

const attempt = z.discriminatedUnion('state', [
  z.object({ state: z.literal('under-way'), input: z.string(), startedAt: z.number() }),
  z.object({ state: z.literal('created'), input: z.string(), link: z.object({ id: z.string(), url: z.string() }) }),
  z.object({ state: z.literal('unknown'), input: z.string() }),
]);
type Attempt = z.output<typeof attempt>;

/** Codes after which the service may have created the link although we hold no link. */
const ambiguous: ReadonlySet<string> = new Set(['OUTCOME_UNKNOWN', 'UPSTREAM_INVALID_RESPONSE']);

/**
 * Creates client links; with an idempotency key at most once for each caller and key in 24 hours, whatever happens on
 * the way. The attempt is written down before the request leaves, and that record alone decides what a later try may do:
 * no record, go ahead; created, replay; under way, wait; under way for too long or unknown, say so and never guess.
 */
export class ClientLinks {
  readonly #options: ClientLinksOptions;
  readonly #now: () => number;

  constructor(options: ClientLinksOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * @param idempotency the caller's key together with who the caller is; undefined creates without protection
   * @throws GatewayError IDEMPOTENCY_CONFLICT for a known key with another input; OUTCOME_UNKNOWN when the link may exist
   */
  async create(
    request: ClientLinkRequest,
    idempotency: { readonly caller: string; readonly key: string } | undefined,
  ): Promise<CreatedLink> {
    if (idempotency === undefined) {
      const link = await this.#send(request);
      this.#options.onOutcome?.('created');
      return { link, replayed: false };
    }
    const name = ['client-link', idempotency.caller, idempotency.key];
    const text = stableStringify(request);
    const input = this.#options.digests.of(text);
    const begun: Attempt = { state: 'under-way', input, startedAt: this.#now() };
    while (!(await this.#options.store.setIfAbsent(name, begun, idempotencyTtlMs))) {
      const link = await this.#settled(name, text);
      if (link === undefined) continue; // the other try failed for certain and is forgotten: ours may begin
      this.#options.onOutcome?.('replayed');
      return { link, replayed: true };
    }
    return this.#attempt(name, input, request);
  }

  async #attempt(name: readonly string[], input: string, request: ClientLinkRequest): Promise<CreatedLink> {
    try {
      const link = await this.#send(request);
      await this.#write(name, { state: 'created', input, link });
      this.#options.onOutcome?.('created');
      return { link, replayed: false };
    } catch (error) {
      if (error instanceof GatewayError && !ambiguous.has(error.code)) {
        await this.#options.store.delete(name);
      } else {
        await this.#write(name, { state: 'unknown', input });
      }
      throw error;
    }
  }

  /** The link of an earlier try, once that try is settled; undefined when it is known to have failed. */
  async #settled(name: readonly string[], text: string): Promise<ClientLink | undefined> {
    for (;;) {
      const stored = attempt.safeParse(await this.#options.store.get(name));
      if (!stored.success) return undefined;
      const earlier = stored.data;
      if (!this.#options.digests.match(text, earlier.input)) {
        this.#options.onOutcome?.('conflict');
        throw new GatewayError('IDEMPOTENCY_CONFLICT', 'This idempotencyKey was used with another input');
      }
      if (earlier.state === 'created') return earlier.link;
      if (earlier.state === 'unknown' || this.#now() - earlier.startedAt > this.#options.workMs) {
        this.#options.onOutcome?.('unknown');
        throw new GatewayError('OUTCOME_UNKNOWN', 'An earlier try with this idempotencyKey may have created the link');
      }
      await delay(lookAgainMs);
    }
  }

  async #send(request: ClientLinkRequest): Promise<ClientLink> {
    try {
      return await this.#options.service.createClientLink(request);
    } catch (error) {
      const unknown = error instanceof GatewayError && error.code === 'OUTCOME_UNKNOWN';
      this.#options.onOutcome?.(unknown ? 'unknown' : 'failed');
      throw error;
    }
  }

  #write(name: readonly string[], state: Attempt): Promise<void> {
    return this.#options.store.set(name, state, idempotencyTtlMs);
  }
}
