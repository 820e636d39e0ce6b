import { hash } from 'node:crypto';
import { stringify as stableStringify } from 'safe-stable-stringify';
import { GatewayError } from '../errors/errors.js';
import { BoundedCache, heapPart, heldBytes } from '../process/memory.js';
import { pause } from '../process/pause.js';
import type { StoreError } from '../stores/StoreError.js';
import type { CallOptions } from '../upstream/ResilientFetch.js';
import type { ReadingOptions } from './TaxpayerService.js';
import type { ClientLink, ClientLinkRequest } from './wire.js';

/** `replayed`: the link had been created before, with the same key and input. */
export type CreatedLink = { readonly link: ClientLink; readonly replayed: boolean };

/** `workMs`: the longest time a creation can be under way. */
type ClientLinksOptions = Pick<ReadingOptions, 'service' | 'store' | 'calls' | 'workMs'>;

/** How long a key is remembered. */
export const idempotencyHours = 24;
const idempotencyTtlMs = idempotencyHours * 3_600_000;
const lookAgainMs = 100; // poll interval while another request or process has the creation under way

/** The stored record of an idempotency key. `input` is a plain hash, not a keyed one, because the record is encrypted. */
type LinkRecord = { readonly input: string } & (
  | { readonly state: 'under-way' | 'unknown' }
  | { readonly state: 'created'; readonly link: ClientLink }
);

/**
 * Creates client links; with an idempotency key at most one per caller and key while it is remembered. A record is written
 * before the request is sent, and it alone decides what a later try does: without a record the try sends the request, after
 * a creation it replays the link, while a creation is under way it waits. The outcome is unknown when that takes longer than
 * any creation, or when the record says `unknown` or cannot be read.
 *
 * Only the shared store can tell that no process has a record of a key. While the store does not answer, no request with a
 * key is sent, and only the keys whose records this process wrote itself are known.
 */
export class ClientLinks {
  /** The records this process wrote, by name: the shared store may have lost or refused them. */
  readonly #own = new BoundedCache<LinkRecord>({
    max: heapPart(16, 1 << 24), // bytes
    sizeCalculation: (record, name) => heldBytes(record) + heldBytes(name),
    ttl: idempotencyTtlMs - 1, // lru-cache still returns an entry whose age equals its ttl
  });

  /** The next look at each record, by name. All tries that wait for the same creation share it. */
  readonly #looks = new Map<string, Promise<LinkRecord | undefined>>();

  constructor(private readonly options: ClientLinksOptions) {}

  /**
   * @param idempotency who the caller is, together with the caller's key; undefined creates without protection
   * @throws GatewayError IDEMPOTENCY_CONFLICT for a known key with another input; OUTCOME_UNKNOWN when the link may exist;
   *   UPSTREAM_UNAVAILABLE also when the shared store cannot tell whether the key is known
   */
  async create(
    request: ClientLinkRequest,
    idempotency: readonly [caller: string, key: string] | undefined,
    call: CallOptions = {},
  ): Promise<CreatedLink> {
    const { calls, service, workMs } = this.options;
    const { holder } = call;
    const send = () => service.createClientLink(request, call);
    if (idempotency === undefined) return { link: await calls.run(holder, send), replayed: false };
    const name = JSON.stringify(idempotency);
    // The hash covers the name, so that equal inputs under different keys look different.
    const input = hash('sha256', `${name} ${stableStringify(request)}`, 'base64url');
    let waitsUntil: number | undefined;
    let record: LinkRecord | undefined;
    for (;;) {
      // While the key has a record, a try only waits: it claims nothing and takes no place.
      if (record === undefined) {
        const link = await calls.run(holder, () => this.#createIfNew(name, input, send));
        if (link !== undefined) return { link, replayed: false };
        record = await this.#recordOf(name);
      }
      if (record && record.input !== input) {
        throw new GatewayError('IDEMPOTENCY_CONFLICT', 'This idempotencyKey was already used with different input');
      }
      if (record?.state === 'created') return { link: record.link, replayed: true };
      waitsUntil ??= performance.now() + workMs;
      if (record?.state === 'unknown' || performance.now() > waitsUntil) throw mayExist();
      record = await this.#lookAgain(name);
    }
  }

  /** Records that a try begins, and sends the request; undefined when the key has a record already. */
  async #createIfNew(name: string, input: string, send: () => Promise<ClientLink>): Promise<ClientLink | undefined> {
    const { store } = this.options;
    if (this.#own.has(name)) return undefined;
    const begun: LinkRecord = { state: 'under-way', input };
    const withdraw = await store.claim(itemNameOf(name), begun, idempotencyTtlMs).catch(cannotTell);
    // If the store has lost the claim of another try of this process, that try may have begun meanwhile.
    if (withdraw === undefined || this.#own.has(name)) return undefined;
    const write = (record: LinkRecord) => {
      this.#own.set(name, record);
      return store.writeSurely(itemNameOf(name), record, idempotencyTtlMs);
    };
    this.#own.set(name, begun);
    const link = await send().catch(async (error) => {
      const isCertain = error instanceof GatewayError && error.code !== 'OUTCOME_UNKNOWN';
      if (isCertain) {
        this.#own.delete(name);
        await withdraw();
      } else await write({ state: 'unknown', input });
      throw error;
    });
    await write({ state: 'created', input, link });
    return link;
  }

  #lookAgain(name: string): Promise<LinkRecord | undefined> {
    const look = async () => {
      await pause(lookAgainMs);
      this.#looks.delete(name);
      return this.#recordOf(name);
    };
    const next = this.#looks.get(name) ?? look();
    this.#looks.set(name, next);
    return next;
  }

  async #recordOf(name: string): Promise<LinkRecord | undefined> {
    const own = this.#own.get(name);
    if (own !== undefined) return own;
    const item = await this.options.store.get(itemNameOf(name)).catch(cannotTell);
    if (item && item.value === undefined) throw mayExist(); // a record that cannot be read
    return item?.value as LinkRecord | undefined;
  }
}

const itemNameOf = (name: string) => ['client-link', name];

function mayExist(): GatewayError {
  return new GatewayError('OUTCOME_UNKNOWN', 'An earlier try with this idempotencyKey may have created the link');
}

function cannotTell({ trouble, code = trouble }: StoreError): never {
  const message = 'The store (CACHE_URL) cannot keep the idempotencyKey now; nothing was sent';
  throw new GatewayError('UPSTREAM_UNAVAILABLE', message, { reason: `store: ${code}` });
}
