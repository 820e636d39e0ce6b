import { createCipheriv, createDecipheriv, createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import type { Config } from '../config/config.js';
import type { Secret } from '../config/Secret.js';

const keyIdBytes = 4;
const nonceBytes = 12;
const tagBytes = 16;
const headerBytes = keyIdBytes + nonceBytes;

/**
 * Makes entries in a store unreadable and unforgeable, and their names unguessable.
 *
 * An entry is: key id (4), nonce (12), AES-256-GCM ciphertext, tag (16). The tag also authenticates key id, nonce and the
 * entry's name. The first key seals and each opens what it sealed, so a new key in front costs nothing.
 * Names are keyed hashes under the last key: dropping that one gives every entry a new name.
 */
export class Sealer {
  #rings: readonly KeyRing[] = [];

  /** Without encryption keys, the client secret takes their place. */
  constructor(private readonly config: Pick<Config, 'UPSTREAM_CLIENT_SECRET' | 'CACHE_ENCRYPTION_KEY'>) {
    this.renew();
  }

  /** Derives the keys again, after the client secret has changed. Returns whether they depend on it. */
  renew(): boolean {
    const { UPSTREAM_CLIENT_SECRET: secret, CACHE_ENCRYPTION_KEY: keys } = this.config;
    this.#rings = keys?.map((key) => keyRing('encryption-key', key)) ?? [keyRing('client-secret', secret)];
    return keys === undefined;
  }

  /** The stored name for `parts`. JSON separates the parts, and escapes lone surrogates, which in UTF-8 are all equal. */
  name(parts: readonly string[]): string {
    return keyedHash((this.#rings.at(-1) as KeyRing).names, parts);
  }

  /** Encrypts `bytes` to be stored under `name`. */
  seal(name: string, bytes: Uint8Array): Buffer {
    const { id, encryption } = this.#rings[0] as KeyRing;
    const header = Buffer.concat([id, crypto.getRandomValues(Buffer.allocUnsafe(nonceBytes))]);
    const cipher = createCipheriv('aes-256-gcm', encryption, header.subarray(-nonceBytes));
    cipher.setAAD(Buffer.concat([header, Buffer.from(name)]));
    return Buffer.concat([header, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }

  /** Decrypts the bytes found under `name`. Undefined unless they are an intact entry of a known key and this name. */
  open(name: string, sealed: Buffer): Buffer | undefined {
    try {
      const header = sealed.subarray(0, headerBytes);
      const ring = this.#rings.find(({ id }) => header.subarray(0, keyIdBytes).equals(id));
      if (ring === undefined) return undefined;
      const decipher = createDecipheriv('aes-256-gcm', ring.encryption, header.subarray(-nonceBytes), {
        authTagLength: tagBytes,
      });
      decipher.setAAD(Buffer.concat([header, Buffer.from(name)]));
      decipher.setAuthTag(sealed.subarray(-tagBytes));
      return Buffer.concat([decipher.update(sealed.subarray(headerBytes, -tagBytes)), decipher.final()]);
    } catch {
      return undefined; // also for something else than bytes, which a store at fault may have answered
    }
  }

  /** A keyed hash of `text`, to tell texts apart in logs. It changes when another key comes first. */
  digest(purpose: string, text: string): string {
    return this.digests(purpose, text)[0] as string;
  }

  /** The {@link digest} by each key, the present one first. */
  digests(purpose: string, text: string): readonly string[] {
    return this.#rings.map((ring) => keyedHash(ring.digests, [purpose, text]));
  }
}

type KeyRing = ReturnType<typeof keyRing>;

/** The keys derived from one secret, each for one use, so that none can stand in for another. */
function keyRing(from: 'encryption-key' | 'client-secret', secret: Secret) {
  const input = Buffer.from(secret.reveal(), from === 'encryption-key' ? 'base64' : 'utf8');
  const derive = (use: string, bytes: number) =>
    // The version is part of every derivation, so that another format has other keys and names.
    Buffer.from(hkdfSync('sha256', input, 'taxpayer-gateway/store', `v2/${from}/${use}`, bytes));
  return {
    /** Identifies the ring that sealed an entry. Derived by HKDF, so it reveals nothing about the keys. */
    id: derive('id', keyIdBytes),
    encryption: createSecretKey(derive('encryption', 32)),
    names: createSecretKey(derive('names', 32)),
    digests: createSecretKey(derive('digests', 32)),
  };
}

const keyedHash = (key: KeyObject, parts: readonly string[]): string =>
  createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url');
