import { createHash } from 'node:crypto';
import { inspect } from 'node:util';

/**
 * A string that cannot be printed by accident: `String()`, template literals, `JSON.stringify`, `util.inspect` and
 * structured logs all see `[secret]`. Only {@link Secret.reveal} gives the text, so every place that uses it can be found.
 */
export class Secret {
  readonly #text: string;
  #fingerprint: string | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself. Call it only where the text is put on the wire, encrypted or compared. */
  reveal(): string {
    return this.#text;
  }

  /** A SHA-256 digest in base64url: tells two secrets apart without holding either. Not for low-entropy texts. */
  fingerprint(): string {
    this.#fingerprint ??= createHash('sha256').update(this.#text).digest('base64url');
    return this.#fingerprint;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}
