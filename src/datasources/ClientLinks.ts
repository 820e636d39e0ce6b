import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { stringify as stableStringify } from 'safe-stable-stringify';
import { z } from 'zod';
import { GatewayError } from '../errors.js';
import type { CallOptions } from './ResilientFetch.js';
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
  /** Longest a creation can be under way, in milliseconds; one that is older and has no result never will. */
  readonly workMs: number;
  readonly now?: () => number;
  readonly onOutcome?: (outcome: 'created' | 'replayed' | 'unknown' | 'conflict' | 'failed') => void;
}

/** How long a key is remembered, in milliseconds. */
export const idempotencyTtlMs = 24 * 3_600_000;

/** Pauses between two looks at a creation that somebody else has under way, in milliseconds. */
const lookAgainMs = 50;

/** A hash of what was asked, to be compared and not to be read. It has no key of its own: the record it is in is encrypted. */
const asked = z.object({ input: z.string() });
type Asked = z.output<typeof asked>;

const attempt = z.discriminatedUnion('state', [
  asked.extend({ state: z.literal('under-way'), startedAt: z.number() }),
  asked.extend({ state: z.literal('created'), link: z.object({ id: z.string(), url: z.string() }) }),
  asked.extend({ state: z.literal('unknown') }),
]);
type Attempt = z.output<typeof attempt>;

/**
 * Creates client links; with an idempotency key at most once for each caller and key in 24 hours, whatever happens on
 * the way. The attempt is written down before the request leaves, and that record alone decides what a later try may do:
 * no record, go ahead; created, replay; under way, wait; under way for too long, unknown, or not to be read for as long,
 * say so and never guess.
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
    call: CallOptions = {},
  ): Promise<CreatedLink> {
    if (idempotency === undefined) {
      const link = await this.#send(request, call);
      this.#options.onOutcome?.('created');
      return { link, replayed: false };
    }
    const name = ['client-link', idempotency.caller, idempotency.key];
    const own: Asked = { input: hashOf(name, stableStringify(request)) };
    let unreadableSince: number | undefined;
    while (!(await this.#begin(name, own))) {
      const earlier = await this.#settled(name, own);
      if (earlier === 'failed') {
        unreadableSince = undefined; // it is forgotten: ours may begin
      } else if (earlier !== 'unreadable') {
        this.#options.onOutcome?.('replayed');
        return { link: earlier, replayed: true };
      } else if (unreadableSince === undefined) {
        unreadableSince = this.#now(); // or it vanished before we looked: then ours begins at once
      } else {
        if (this.#now() - unreadableSince > this.#options.workMs) throw this.#unknown();
        await delay(lookAgainMs);
      }
    }
    return this.#attempt(name, own, request, call);
  }

  /** Writes down that a try begins, unless there is a record already. */
  #begin(name: readonly string[], own: Asked): Promise<boolean> {
    const begun: Attempt = { state: 'under-way', ...own, startedAt: this.#now() };
    return this.#options.store.setIfAbsent(name, begun, idempotencyTtlMs);
  }

  async #attempt(
    name: readonly string[],
    own: Asked,
    request: ClientLinkRequest,
    call: CallOptions,
  ): Promise<CreatedLink> {
    try {
      const link = await this.#send(request, call);
      await this.#write(name, { state: 'created', ...own, link });
      this.#options.onOutcome?.('created');
      return { link, replayed: false };
    } catch (error) {
      if (error instanceof GatewayError && error.code !== 'OUTCOME_UNKNOWN') {
        await this.#options.store.delete(name);
      } else {
        await this.#write(name, { state: 'unknown', ...own });
      }
      throw error;
    }
  }

  /**
   * The link of an earlier try, once that try is settled. `failed`: it was under way and its record is gone, so it failed for
   * certain. `unreadable`: there is no record, or one that does not open (tampered, foreign, expired by our clock alone).
   */
  async #settled(name: readonly string[], own: Asked): Promise<ClientLink | 'failed' | 'unreadable'> {
    const waitedFrom = this.#now();
    for (let seen = false; ; seen = true) {
      const stored = attempt.safeParse(await this.#options.store.look(name));
      if (!stored.success) return seen ? 'failed' : 'unreadable';
      const earlier = stored.data;
      if (earlier.input !== own.input) {
        this.#options.onOutcome?.('conflict');
        throw new GatewayError('IDEMPOTENCY_CONFLICT', 'This idempotencyKey was used with another input');
      }
      if (earlier.state === 'created') return earlier.link;
      if (earlier.state === 'unknown') throw this.#unknown();
      // Its clock may be ahead of ours: then what counts is how long we have waited.
      if (this.#now() - Math.min(earlier.startedAt, waitedFrom) > this.#options.workMs) throw this.#unknown();
      await delay(lookAgainMs);
    }
  }

  #unknown(): GatewayError {
    this.#options.onOutcome?.('unknown');
    return new GatewayError('OUTCOME_UNKNOWN', 'An earlier try with this idempotencyKey may have created the link');
  }

  async #send(request: ClientLinkRequest, call: CallOptions): Promise<ClientLink> {
    try {
      return await this.#options.service.createClientLink(request, call);
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

/** The name makes equal inputs under different keys look different. */
function hashOf(name: readonly string[], text: string): string {
  return createHash('sha256')
    .update(JSON.stringify([...name, text]))
    .digest('base64url');
}
