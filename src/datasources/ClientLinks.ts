import { hash } from 'node:crypto';
import { stringify as stableStringify } from 'safe-stable-stringify';
import * as z from 'zod';
import type { CallQueue } from '../admission/CallQueue.js';
import { heldBytes } from '../cache/heldBytes.js';
import type { Claim, SealedStore } from '../cache/SealedStore.js';
import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import { pause } from '../process/pause.js';
import type { CallOptions } from '../upstream/ResilientFetch.js';
import type { TaxpayerService } from './TaxpayerService.js';
import type { ClientLink, ClientLinkRequest } from './wire.js';

/** `replayed`: the link had been created before, with the same key and input. */
export type CreatedLink = { readonly link: ClientLink; readonly replayed: boolean };

export interface ClientLinksOptions {
  readonly service: TaxpayerService;
  readonly store: SealedStore;
  readonly calls: CallQueue;
  /** Longest time a creation can be under way, in milliseconds. An older one that has no result will never get one. */
  readonly workMs: number;
}

const idempotencyTtlMs = 24 * 3_600_000; // how long a key is remembered
const lookAgainMs = 50; // poll interval while another request or process has the creation under way
const mostSkewMs = 600_000; // largest clock skew between us and the process that began a creation

/** The stored record of an idempotency key. `input` is a plain hash, not a keyed one, because the record is encrypted. */
const storedRecord = z.discriminatedUnion('state', [
  z.object({ state: z.literal('under-way'), input: z.string(), startedAt: z.number() }),
  z.object({ state: z.literal('created'), input: z.string(), link: z.object({ id: z.string(), url: z.string() }) }),
  z.object({ state: z.literal('unknown'), input: z.string() }),
]);
type LinkRecord = z.output<typeof storedRecord>;

interface Idempotency {
  readonly caller: string;
  readonly key: string;
}

/** A creation with an idempotency key. `name` holds the caller and the key, `text` is `name` as JSON, `input` is a hash. */
interface Attempt {
  readonly name: readonly string[];
  readonly text: string;
  readonly input: string;
  readonly request: ClientLinkRequest;
  readonly call: CallOptions;
}

/**
 * Creates client links; with an idempotency key at most one per caller and key in 24 hours. A record is written before the
 * request is sent, and it alone decides what a later try does: without a record the try sends the request, after a creation
 * it replays the link, while a creation is under way it waits. The outcome is unknown when the wait takes too long, or when
 * the record says `unknown` or cannot be read.
 *
 * Only the shared store can tell that no process has a record of a key. While the store does not answer, no request with a
 * key is sent, and only the keys whose records this process wrote itself are known.
 */
export class ClientLinks {
  /** The records this process wrote, by name: the shared store may have lost or refused them. */
  readonly #own = new BoundedCache<LinkRecord>({
    max: 10_000,
    maxSize: 16 * 1024 * 1024, // bytes
    sizeCalculation: (record, name) => heldBytes(record) + heldBytes(name),
    ttl: idempotencyTtlMs - 1, // lru-cache still returns an entry whose age equals its ttl
    ttlResolution: 0,
    perf: Date, // the record in the store expires by this clock
  });

  constructor(private readonly options: ClientLinksOptions) {}

  /**
   * @param idempotency the caller's key together with who the caller is; undefined creates without protection
   * @throws GatewayError IDEMPOTENCY_CONFLICT for a known key with another input; OUTCOME_UNKNOWN when the link may exist;
   *   UPSTREAM_UNAVAILABLE also when the shared store cannot tell whether the key is known
   */
  async create(
    request: ClientLinkRequest,
    idempotency: Idempotency | undefined,
    call: CallOptions = {},
  ): Promise<CreatedLink> {
    const { calls, service } = this.options;
    if (idempotency !== undefined) return this.#createOnce(attemptOf(request, idempotency, call));
    return { link: await calls.run(call.holder, () => service.createClientLink(request, call)), replayed: false };
  }

  async #createOnce(attempt: Attempt): Promise<CreatedLink> {
    const { workMs } = this.options;
    /**
     * What we wait for: the end of an earlier try, identified by `startedAt`, or (undefined) a record that can be read.
     * `sinceMs` is monotonic, because the wall clock may be set back during the wait.
     */
    let waiting: { readonly startedAt: number | undefined; readonly sinceMs: number } | undefined;
    for (let record: LinkRecord | undefined; ; ) {
      // No claim while a record exists: with several keys, a claim that fails holds one briefly, which looks like a new try.
      const link = record === undefined ? await this.#createInPlace(attempt) : undefined;
      if (link !== undefined) return { link, replayed: false };
      record = await this.#recordOf(attempt);
      if (record !== undefined && record.input !== attempt.input) {
        throw new GatewayError('IDEMPOTENCY_CONFLICT', 'This idempotencyKey was used with another input');
      }
      if (record?.state === 'created') return { link: record.link, replayed: true };
      if (record?.state === 'unknown') throw unknown();
      const startedAt = record?.startedAt;
      if (waiting === undefined || waiting.startedAt !== startedAt) {
        waiting = { startedAt, sinceMs: performance.now() };
      }
      // Clocks differ, so the limit is on our own wait, unless the creation is too old even with the largest skew.
      const isTooOld = startedAt !== undefined && Date.now() - startedAt > workMs + mostSkewMs;
      if (isTooOld || performance.now() - waiting.sinceMs > workMs) throw unknown();
      await pause(lookAgainMs);
    }
  }

  /** Undefined when the key has a record already. Its creation is waited for without a place. */
  #createInPlace(attempt: Attempt): Promise<ClientLink | undefined> {
    return this.options.calls.run(attempt.call.holder, async () => {
      const claim = await this.#claim(attempt);
      return claim && this.#create(attempt, claim);
    });
  }

  /** Records that a try begins; undefined when the key has a record already. */
  async #claim({ name, text, input }: Attempt): Promise<Claim | undefined> {
    if (this.#own.has(text)) return undefined;
    const begun: LinkRecord = { state: 'under-way', input, startedAt: Date.now() };
    try {
      const claim = await this.options.store.claim(name, begun, idempotencyTtlMs);
      if (claim !== undefined) this.#own.set(text, begun);
      return claim;
    } catch (cause) {
      throw new GatewayError('UPSTREAM_UNAVAILABLE', 'The shared store does not answer; nothing was sent', { cause });
    }
  }

  async #create(attempt: Attempt, claim: Claim): Promise<ClientLink> {
    const { text, input, request, call } = attempt;
    let link: ClientLink;
    try {
      link = await this.options.service.createClientLink(request, call);
    } catch (error) {
      if (error instanceof GatewayError && error.code !== 'OUTCOME_UNKNOWN') {
        this.#own.delete(text);
        await claim.withdraw();
      } else {
        await this.#write(attempt, { state: 'unknown', input });
      }
      throw error;
    }
    await this.#write(attempt, { state: 'created', input, link });
    return link;
  }

  /** Undefined without a record, or when it cannot be opened: tampered with, foreign, or expired by our clock only. */
  async #recordOf({ name, text }: Attempt): Promise<LinkRecord | undefined> {
    const stored = async () => (await this.options.store.get(name).catch(() => undefined))?.value;
    return storedRecord.safeParse(this.#own.get(text) ?? (await stored())).data;
  }

  #write({ name, text }: Attempt, record: LinkRecord): Promise<void> {
    this.#own.set(text, record);
    return this.options.store.write(name, record, idempotencyTtlMs);
  }
}

function attemptOf(request: ClientLinkRequest, idempotency: Idempotency, call: CallOptions): Attempt {
  const name = ['client-link', idempotency.caller, idempotency.key];
  // The hash covers the name, so that equal inputs under different keys look different.
  const input = hash('sha256', JSON.stringify([...name, stableStringify(request)]), 'base64url');
  return { name, text: JSON.stringify(name), input, request, call };
}

function unknown(): GatewayError {
  return new GatewayError('OUTCOME_UNKNOWN', 'An earlier try with this idempotencyKey may have created the link');
}
