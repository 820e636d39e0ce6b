import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

export interface RecurringOptions<Value> {
  /** All values together, with their texts, as `bytesOf` tells. */
  readonly maxBytes: number;
  /** About how many bytes of memory a value and its text take. */
  readonly bytesOf: (value: Value, text: string) => number;
}

/** Digests kept, of some 150 bytes each. */
const maxSeen = 4096;

/**
 * Values made of texts, kept when a text comes a second time: texts that come once leave a digest and take no memory. The
 * least recently used go first.
 */
export class Recurring<Value extends NonNullable<unknown>> {
  readonly #kept: LRUCache<string, Value>;
  readonly #seen = new LRUCache<string, true>({ max: maxSeen });

  constructor({ maxBytes, bytesOf }: RecurringOptions<Value>) {
    this.#kept = new LRUCache<string, Value>({ maxSize: maxBytes, sizeCalculation: bytesOf });
  }

  get(text: string): Value | undefined {
    return this.#kept.get(text);
  }

  /** Keeps a value if its text was seen before; otherwise notes the text. */
  offer(text: string, value: Value): void {
    if (this.wasSeen(text)) this.keep(text, value);
    else this.see(text);
  }

  /** Notes a text. */
  see(text: string): void {
    this.#seen.set(digestOf(text), true);
  }

  /** Whether a text was noted, among the last few thousand. */
  wasSeen(text: string): boolean {
    return this.#seen.get(digestOf(text)) === true;
  }

  keep(text: string, value: Value): void {
    this.#kept.set(text, value);
  }
}

/** SHA-256: nobody can make another text that looks like one noted. */
function digestOf(text: string): string {
  return hash('sha256', text, 'base64');
}
