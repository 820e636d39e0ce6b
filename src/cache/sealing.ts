import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Secret } from '../config/secret.js';

/** What the keys of stored entries are derived from. */
export type KeyMaterial =
  | { readonly from: 'encryption-key'; readonly secret: Secret }
  | { readonly from: 'client-secret'; readonly secret: Secret };

const VERSION = 1;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES;
const MAX_KNOWN_NAMES = 5000;
/** The current key and two before it: each one costs a store operation wherever an entry is looked for. */
const MAX_RINGS = 3;

/** Bytes for the store, and the name they are bound to. */
export interface SealedEntry {
  readonly key: string;
  readonly bytes: Buffer;
}

/**
 * Makes what leaves the process for a store unreadable and unforgeable, and its names unguessable.
 *
 * An entry is: version byte, key id (4), nonce (12), AES-256-GCM ciphertext, tag (16). The name it is stored under is
 * authenticated with it, so an entry copied to another name does not open.
 *
 * **Rotation.** Names are keyed too, so a new key gives every entry a new name. While a previous key is known, whatever is
 * done to an entry is done under each of its names ({@link keys}), sealed with the key of that name ({@link sealAll}): so
 * processes that know only the old key, or only the new one, see it as well. When the old key is not given as previous,
 * old entries are simply not found, which costs one fetch each.
 */
export class Sealer {
  /** Current first. */
  #rings: readonly KeyRing[];

  constructor(current: KeyMaterial, previous: readonly KeyMaterial[] = []) {
    this.#rings = newestOnce([current, ...previous].map(deriveRing));
  }

  /** Makes `current` the key of new entries, when it is not already; of the keys before it the newest two stay known. */
  rotate(current: KeyMaterial): void {
    this.#rings = newestOnce([deriveRing(current), ...this.#rings]);
  }

  /** The name of what `parts` identify under the current key: 43 characters of base64url. */
  key(parts: readonly string[]): string {
    return nameOf(this.#current, parts);
  }

  /** The names of what `parts` identify, current key first, then the previous ones from the newest to the oldest. */
  keys(parts: readonly string[]): readonly string[] {
    return this.#rings.map((ring) => nameOf(ring, parts));
  }

  /** Encrypts `bytes` to be stored under `key`. */
  seal(key: string, bytes: Uint8Array): Buffer {
    return sealWith(this.#current, key, bytes);
  }

  /** Encrypts `bytes` for each of the names of what `parts` identify, with the key of that name; in the order of {@link keys}. */
  sealAll(parts: readonly string[], bytes: Uint8Array): readonly SealedEntry[] {
    return this.#rings.map((ring) => {
      const key = nameOf(ring, parts);
      return { key, bytes: sealWith(ring, key, bytes) };
    });
  }

  /** Decrypts what was found under `key`. Undefined when it is anything but an intact entry of a known key and that name. */
  open(key: string, sealed: Buffer): Buffer | undefined {
    if (sealed.length < HEADER_BYTES + TAG_BYTES || sealed[0] !== VERSION) return undefined;
    const header = sealed.subarray(0, HEADER_BYTES);
    const id = header.subarray(1, 1 + KEY_ID_BYTES);
    const ring = this.#rings.find((known) => known.id.equals(id));
    if (!ring) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', ring.encryption, header.subarray(-NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(associatedData(header, key));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined; // the only thing that throws here is a tag that does not match
    }
  }

  /**
   * A keyed hash of `text` for one `purpose`, to tell texts apart in logs without holding them. It changes when the key is
   * rotated.
   */
  digest(purpose: string, text: string): string {
    return createHmac('sha256', this.#current.digests)
      .update(JSON.stringify([purpose, text]))
      .digest('base64url');
  }

  get #current(): KeyRing {
    const [current] = this.#rings;
    if (!current) throw new Error('A Sealer has at least one key.');
    return current;
  }
}

/** The keys derived from one secret, each for one use, so that none can stand in for another. */
interface KeyRing {
  /** Tells which ring sealed an entry; derived, so it says nothing about the keys. */
  readonly id: Buffer;
  readonly encryption: KeyObject;
  readonly names: KeyObject;
  /** Names made before: the same few are looked for again and again, and a hash costs ten times a look here. */
  readonly known: LRUCache<string, string>;
  readonly digests: KeyObject;
}

function deriveRing({ from, secret }: KeyMaterial): KeyRing {
  const input = Buffer.from(secret.reveal(), from === 'encryption-key' ? 'base64' : 'utf8');
  if (input.length === 0) throw new TypeError('The key material of a Sealer must not be empty.');
  const derive = (use: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', input, 'taxpayer-gateway/store', `v${VERSION}/${from}/${use}`, bytes));
  return {
    id: derive('id', KEY_ID_BYTES),
    encryption: createSecretKey(derive('encryption', 32)),
    names: createSecretKey(derive('names', 32)),
    known: new LRUCache({ max: MAX_KNOWN_NAMES }),
    digests: createSecretKey(derive('digests', 32)),
  };
}

/** Each key once, though it be given as current and previous: an entry must not meet itself under a second name. */
function newestOnce(rings: readonly KeyRing[]): readonly KeyRing[] {
  return rings.filter(({ id }, at) => rings.findIndex((ring) => ring.id.equals(id)) === at).slice(0, MAX_RINGS);
}

function sealWith({ id, encryption }: KeyRing, key: string, bytes: Uint8Array): Buffer {
  const header = Buffer.concat([Buffer.of(VERSION), id, randomBytes(NONCE_BYTES)]);
  const cipher = createCipheriv('aes-256-gcm', encryption, header.subarray(-NONCE_BYTES));
  cipher.setAAD(associatedData(header, key));
  return Buffer.concat([header, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
}

/** JSON keeps the boundaries between the parts, and escapes lone surrogates, which UTF-8 would merge into one character. */
function nameOf(ring: KeyRing, parts: readonly string[]): string {
  const text = JSON.stringify(parts);
  const known = ring.known.get(text);
  if (known !== undefined) return known;
  const name = createHmac('sha256', ring.names).update(text).digest('base64url');
  ring.known.set(text, name);
  return name;
}

/** Everything the ciphertext is bound to: the version, the key and the nonce before it, and the name it is stored under. */
function associatedData(header: Buffer, key: string): Buffer {
  return Buffer.concat([header, Buffer.from(key)]);
}
