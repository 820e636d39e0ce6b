import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { stringify as stableStringify } from 'safe-stable-stringify';
import { z } from 'zod';
import type { FairQueue } from '../admission/FairQueue.js';
import { heldBytes } from '../cache/heldBytes.js';
import type { Claim, EntryName, SealedStore } from '../cache/SealedStore.js';
import { GatewayError } from '../errors/errors.js';
import type { CallOptions } from '../upstream/ResilientFetch.js';
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
  /** Where creations wait for their turn; none wait when left out. */
  readonly places?: FairQueue | undefined;
  /** Longest a creation can be under way, in milliseconds; one that is older and has no result never will. */
  readonly workMs: number;
  readonly now?: () => number;
  readonly onOutcome?: (outcome: 'created' | 'replayed' | 'unknown' | 'conflict' | 'failed') => void;
}

/** How long a key is remembered, in milliseconds. */
export const idempotencyTtlMs = 24 * 3_600_000;

/** Pauses between two looks at a creation that somebody else has under way, in milliseconds. */
const lookAgainMs = 50;

/** How many records of its own a process keeps in memory, and how many bytes of them. */
const ownRecords = { max: 10_000, maxSize: 16 * 1024 * 1024 };

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
 *
 * Only the shared store can tell that no process has a record of a key. While it does not answer nothing is sent, and the
 * keys are known whose records this process wrote itself.
 */
export class ClientLinks {
  readonly #options: ClientLinksOptions;
  readonly #now: () => number;
  /** The records this process wrote, by their names: what the shared store may have lost, or not have taken. */
  readonly #records: LRUCache<string, Attempt>;

  constructor(options: ClientLinksOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#records = new LRUCache({
      ...ownRecords,
      sizeCalculation: (record, name) => heldBytes(record) + heldBytes(name),
      ttl: idempotencyTtlMs - 1, // for lru-cache the last millisecond is not over yet
      ttlResolution: 0,
      perf: { now: this.#now },
    });
  }

  /**
   * @param idempotency the caller's key together with who the caller is; undefined creates without protection
   * @throws GatewayError IDEMPOTENCY_CONFLICT for a known key with another input; OUTCOME_UNKNOWN when the link may exist;
   *   UPSTREAM_UNAVAILABLE also when the shared store cannot tell whether the key is known
   */
  create(
    request: ClientLinkRequest,
    idempotency: { readonly caller: string; readonly key: string } | undefined,
    call: CallOptions = {},
  ): Promise<CreatedLink> {
    const create = () => this.#create(request, idempotency, call);
    return this.#options.places?.run(call.holder, create) ?? create();
  }

  async #create(
    request: ClientLinkRequest,
    idempotency: { readonly caller: string; readonly key: string } | undefined,
    call: CallOptions,
  ): Promise<CreatedLink> {
    if (idempotency === undefined) {
      const link = await this.#send(request, call);
      this.#options.onOutcome?.('created');
      return { link, replayed: false };
    }
    const name = ['client-link', idempotency.caller, idempotency.key];
    const own: Asked = { input: hashOf(name, stableStringify(request)) };
    let unreadableSince: number | undefined;
    for (;;) {
      const claim = await this.#begin(name, own);
      if (claim !== undefined) return this.#attempt(claim, name, own, request, call);
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
  }

  /** Writes down that a try begins, unless there is a record already. */
  async #begin(name: EntryName, own: Asked): Promise<Claim | undefined> {
    if (this.#records.has(textOf(name))) return undefined;
    const begun: Attempt = { state: 'under-way', ...own, startedAt: this.#now() };
    try {
      const claim = await this.#options.store.claim(name, begun, idempotencyTtlMs);
      if (claim !== undefined) this.#records.set(textOf(name), begun);
      return claim;
    } catch (cause) {
      this.#options.onOutcome?.('failed');
      throw new GatewayError('UPSTREAM_UNAVAILABLE', 'The shared store does not answer; nothing was sent', { cause });
    }
  }

  async #attempt(
    claim: Claim,
    name: EntryName,
    own: Asked,
    request: ClientLinkRequest,
    call: CallOptions,
  ): Promise<CreatedLink> {
    const link = await this.#send(request, call).catch(async (error) => {
      if (error instanceof GatewayError && error.code !== 'OUTCOME_UNKNOWN') {
        this.#records.delete(textOf(name));
        await claim.withdraw();
      } else {
        await this.#write(name, { state: 'unknown', ...own });
      }
      throw error;
    });
    await this.#write(name, { state: 'created', ...own, link });
    this.#options.onOutcome?.('created');
    return { link, replayed: false };
  }

  /**
   * The link of an earlier try, once that try is settled. `failed`: it was under way and its record is gone, so it failed for
   * certain. `unreadable`: there is no record, or one that does not open (tampered, foreign, expired by our clock alone).
   */
  async #settled(name: EntryName, own: Asked): Promise<ClientLink | 'failed' | 'unreadable'> {
    const waitedFrom = this.#now();
    for (let seen = false; ; seen = true) {
      const stored = attempt.safeParse(this.#records.get(textOf(name)) ?? (await this.#options.store.look(name)));
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

  #write(name: EntryName, state: Attempt): Promise<void> {
    this.#records.set(textOf(name), state);
    return this.#options.store.set(name, state, idempotencyTtlMs);
  }
}

function textOf(name: EntryName): string {
  return JSON.stringify(name);
}

/** The name makes equal inputs under different keys look different. */
function hashOf(name: EntryName, text: string): string {
  return createHash('sha256')
    .update(JSON.stringify([...name, text]))
    .digest('base64url');
}
