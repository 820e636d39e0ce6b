import { hash } from 'node:crypto';

/**
 * A string that cannot be printed by accident: template literals, `JSON.stringify`, `util.inspect` and structured logs do
 * not see it. Only {@link Secret.reveal} gives the text, so every place that uses it can be found. It may be renewed while the
 * process runs: ask for the text each time.
 */
export class Secret {
  #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself. Call it only where the text is put on the wire, encrypted or compared. */
  reveal(): string {
    return this.#text;
  }

  /** Takes another text, for all who hold this secret. */
  renew(text: string): void {
    this.#text = text;
  }

  /** A SHA-256 digest in base64url: tells two secrets apart without holding either. Not for low-entropy texts. */
  fingerprint(): string {
    return hash('sha256', this.#text, 'base64url');
  }
}
