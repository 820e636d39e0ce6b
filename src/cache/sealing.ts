import { createCipheriv, createDecipheriv, createHmac, createSecretKey, hkdfSync } from 'node:crypto';
import type { Secret } from '../config/secret.js';
import { BoundedCache } from '../process/BoundedCache.js';

/** What the keys of stored entries are derived from. */
export interface KeyMaterial {
  readonly from: 'encryption-key' | 'client-secret';
  readonly secret: Secret;
}

const VERSION = 1;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES;
const MAX_KNOWN_NAMES = 5000;
const MAX_RINGS = 3; // the current key and two before it: each costs one store operation more

/**
 * Makes entries in a store unreadable and unforgeable, and their names unguessable.
 *
 * An entry is: version byte, key id (4), nonce (12), AES-256-GCM ciphertext, tag (16). The tag also authenticates version, key
 * id, nonce and the entry's name. Names are keyed hashes, so a new key gives every entry a new name: `SealedStore` works
 * under the names of the current and the previous keys.
 */
export class Sealer {
  #rings: readonly KeyRing[];

  /** Uses the configured keys, the current one first. Without one, the client secret takes its place. */
  static of({ encryptionKeys }: { readonly encryptionKeys: readonly Secret[] }, clientSecret: Secret): Sealer {
    const [current, ...previous] = encryptionKeys.map((secret): KeyMaterial => ({ from: 'encryption-key', secret }));
    return new Sealer(current ?? { from: 'client-secret', secret: clientSecret }, previous);
  }

  constructor(current: KeyMaterial, previous: readonly KeyMaterial[] = []) {
    this.#rings = newestOnce([current, ...previous].map((material) => new KeyRing(material)));
  }

  /** Current first. */
  get rings(): readonly KeyRing[] {
    return this.#rings;
  }

  get current(): KeyRing {
    return this.#rings[0] as KeyRing;
  }

  /** Makes `current` the key of new entries; of the keys before it the newest two stay known. */
  rotate(current: KeyMaterial): void {
    this.#rings = newestOnce([new KeyRing(current), ...this.#rings]);
  }

  /** A keyed hash of `text`, to tell texts apart in logs. It changes when the key is rotated. */
  digest(purpose: string, text: string): string {
    return this.current.digest(purpose, text);
  }
}

/** The keys derived from one secret, each for one use, so that none can stand in for another. */
export class KeyRing {
  /** Identifies the ring that sealed an entry. Derived by HKDF, so it reveals nothing about the keys. */
  readonly id: Buffer;
  readonly #encryption;
  readonly #names;
  readonly #digests;
  /** Names by their parts: computing an HMAC costs ten times as much as a lookup here. */
  readonly #known = new BoundedCache<string>({ max: MAX_KNOWN_NAMES });

  constructor({ from, secret }: KeyMaterial) {
    const input = Buffer.from(secret.reveal(), from === 'encryption-key' ? 'base64' : 'utf8');
    if (input.length === 0) throw new TypeError('The key material of a Sealer must not be empty.');
    const derive = (use: string, bytes: number) =>
      Buffer.from(hkdfSync('sha256', input, 'taxpayer-gateway/store', `v${VERSION}/${from}/${use}`, bytes));
    this.id = derive('id', KEY_ID_BYTES);
    this.#encryption = createSecretKey(derive('encryption', 32));
    this.#names = createSecretKey(derive('names', 32));
    this.#digests = createSecretKey(derive('digests', 32));
  }

  /** The stored name for `parts`. JSON keeps the parts apart, and lone surrogates too, which UTF-8 would make equal. */
  name(parts: readonly string[]): string {
    const text = JSON.stringify(parts);
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const name = createHmac('sha256', this.#names).update(text).digest('base64url');
    this.#known.set(text, name);
    return name;
  }

  /** Encrypts `bytes` to be stored under `name`. */
  seal(name: string, bytes: Uint8Array): Buffer {
    const header = Buffer.concat([
      Buffer.of(VERSION),
      this.id,
      crypto.getRandomValues(Buffer.allocUnsafe(NONCE_BYTES)),
    ]);
    const cipher = createCipheriv('aes-256-gcm', this.#encryption, header.subarray(-NONCE_BYTES));
    cipher.setAAD(Buffer.concat([header, Buffer.from(name)]));
    return Buffer.concat([header, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }

  /** Decrypts the bytes found under `name`. Undefined unless they are an intact entry of this key and this name. */
  open(name: string, sealed: Buffer): Buffer | undefined {
    if (sealed.length < HEADER_BYTES + TAG_BYTES || sealed[0] !== VERSION) return undefined;
    const header = sealed.subarray(0, HEADER_BYTES);
    if (!header.subarray(1, 1 + KEY_ID_BYTES).equals(this.id)) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', this.#encryption, header.subarray(-NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.concat([header, Buffer.from(name)]));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined; // the only thing that throws here is a tag that does not match
    }
  }

  digest(purpose: string, text: string): string {
    return createHmac('sha256', this.#digests)
      .update(JSON.stringify([purpose, text]))
      .digest('base64url');
  }
}

/** The newest rings, each key once: one key may be given as both current and previous. */
function newestOnce(rings: readonly KeyRing[]): readonly KeyRing[] {
  return rings.filter(({ id }, at) => rings.findIndex((ring) => ring.id.equals(id)) === at).slice(0, MAX_RINGS);
}
