import type { KeyRing, Sealer } from '../cache/sealing.js';
import { BoundedCache } from '../process/BoundedCache.js';

/**
 * Names for logs: keyed hashes, equal in all processes with the same key. They change when the key is rotated. Recent hashes
 * are cached, because computing one costs more than writing a line.
 */
export class Pseudonyms {
  #ring: KeyRing | undefined;
  readonly #known = new BoundedCache<string>({ max: 10_000 });

  constructor(private readonly sealer: Sealer) {}

  /** The pseudonym of a caller; `key` holds its issuer and subject. */
  caller(key: string): string {
    return this.#of('caller', key);
  }

  taxpayer(id: string): string {
    return this.#of('taxpayer', id);
  }

  #of(purpose: 'caller' | 'taxpayer', text: string): string {
    const { current } = this.sealer;
    if (current !== this.#ring) this.#known.clear();
    this.#ring = current;
    const name = `${purpose} ${text}`;
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const pseudonym = this.sealer.digest(purpose, text);
    this.#known.set(name, pseudonym);
    return pseudonym;
  }
}
