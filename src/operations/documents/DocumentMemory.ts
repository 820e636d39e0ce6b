import { hash } from 'node:crypto';
import { getHeapStatistics } from 'node:v8';
import type { DocumentNode } from 'graphql';
import { LRUCache } from 'lru-cache';
import { heldBytes } from '../../cache/heldBytes.js';
import { BoundedCache } from '../../process/BoundedCache.js';
import type { GraphQLRequest } from '../GraphQLRequest.js';
import type { KnownPlan, Step } from '../plans/Plan.js';

/** All caches of what callers send, over any transport: a sixteenth of the heap, at least 4 MiB, in fixed shares. */
export class DocumentMemory {
  /** Requests by their body. Not for requests that may hold personal data, as the input of a mutation does. */
  readonly requests: Recurring<GraphQLRequest>;
  /** Documents that are valid and within all limits, by the digest of their text. */
  readonly documents: Recurring<DocumentNode>;
  /** Plans by the text of their document. */
  readonly plans: Recurring<KnownPlan>;

  constructor(maxBytes = Math.max(4_194_304, Math.floor(getHeapStatistics().heap_size_limit / 16))) {
    this.requests = new Recurring(maxBytes / 2, (request, body) => heldBytes([body, request]));
    this.documents = new Recurring(maxBytes / 4, documentBytes);
    this.plans = new Recurring(maxBytes / 4, planBytes);
  }
}

/** Most digests kept, of about 150 bytes each. */
const maxSeen = 4096;

/**
 * An LRU cache of values that are made from texts. A value is cached when its text comes a second time; of a text that came
 * once, only a digest is kept.
 */
export class Recurring<Value extends NonNullable<unknown>> {
  readonly #kept: LRUCache<string, Value>;
  readonly #seen = new BoundedCache<true>({ max: maxSeen });

  /** `maxSize`: bytes for all entries. `bytesOf`: about how many bytes of memory a value and its text take. */
  constructor(maxSize: number, bytesOf: (value: Value, text: string) => number) {
    this.#kept = new LRUCache<string, Value>({ maxSize, sizeCalculation: bytesOf });
  }

  get(text: string): Value | undefined {
    return this.#kept.get(text);
  }

  /** Keeps a value if its text was seen before; otherwise notes the text. */
  offer(text: string, value: Value): void {
    if (this.wasSeen(text)) this.keep(text, value);
    else this.see(text);
  }

  see(text: string): void {
    this.#seen.set(digestOf(text), true);
  }

  /** Whether a text is among the last few thousand that were noted. */
  wasSeen(text: string): boolean {
    return this.#seen.get(digestOf(text)) === true;
  }

  keep(text: string, value: Value): void {
    this.#kept.set(text, value);
  }
}

/** SHA-256 of the text in UTF-16: in UTF-8, where all lone surrogates are the same, different texts could share a digest. */
export function digestOf(text: string): string {
  return hash('sha256', Buffer.from(text, 'utf16le'), 'base64');
}

const entryBytes = 500;
/** Bytes of a character in a text that is not all Latin-1; in others a character takes one. */
const characterBytes = 2;
/** A token with its share of the AST nodes. Measured: 250 to 525, the most where every token is a field. */
const tokenBytes = 525;
/** A comment is kept as a token without an AST node. */
const commentBytes = 90;
/** A step of a plan. Measured: 740 to 990, including its parts that are counted separately below. */
const stepBytes = 850;
const slotBytes = 8;

/** About how many bytes a parsed document takes: it holds its text and every token of it. */
function documentBytes({ loc }: DocumentNode): number {
  let bytes = entryBytes + characterBytes * (loc?.source.body.length ?? 0);
  for (let token = loc?.startToken; token; token = token.next ?? undefined) {
    bytes += token.kind === 'Comment' ? commentBytes : tokenBytes;
  }
  return bytes;
}

/** About how many bytes a plan and its text take. Fragment spreads can give a plan more steps than its text has fields. */
function planBytes(plan: KnownPlan, text: string): number {
  return entryBytes + characterBytes * text.length + (plan.type === 'none' ? 0 : bytesOfSteps(plan.steps));
}

function bytesOfSteps(steps: readonly Step[]): number {
  let bytes = 0;
  for (const { args, positions, fields, members } of steps) {
    bytes += stepBytes + slotBytes * positions.length;
    for (const argument of args) if (argument.from === 'document') bytes += heldBytes(argument.value);
    const selected = members ? [...members.byType.values()] : fields ? [fields] : [];
    for (const one of selected) bytes += bytesOfSteps(one);
  }
  return bytes;
}
