import { hash } from 'node:crypto';
import { getHeapStatistics } from 'node:v8';
import type { DocumentNode } from 'graphql';
import { LRUCache } from 'lru-cache';
import { heldBytes } from '../../cache/heldBytes.js';
import { BoundedCache } from '../../process/BoundedCache.js';
import type { GraphQLRequest } from '../GraphQLRequest.js';
import type { KnownPlan, Step } from '../plans/Plan.js';

/** The one memory of what callers send, for every way it comes: a sixteenth of the heap, at least 4 MiB, in fixed shares. */
export class DocumentMemory {
  /** Requests by their body. Not for what may hold personal data, as the input of a mutation does. */
  readonly requests: Recurring<GraphQLRequest>;
  /** Documents that are valid and within all limits, by the digest of their text. */
  readonly documents: Recurring<DocumentNode>;
  /** Plans by the text they answer. */
  readonly plans: Recurring<KnownPlan>;

  constructor(maxBytes = Math.max(4_194_304, Math.floor(getHeapStatistics().heap_size_limit / 16))) {
    this.requests = new Recurring(maxBytes / 2, (request, body) => heldBytes([body, request]));
    this.documents = new Recurring(maxBytes / 4, documentBytes);
    this.plans = new Recurring(maxBytes / 4, planBytes);
  }
}

/** Digests kept, of some 150 bytes each. */
const maxSeen = 4096;

/**
 * Values made of texts, kept when a text comes a second time: texts that come once leave a digest and take no memory. The
 * least recently used go first.
 */
export class Recurring<Value extends NonNullable<unknown>> {
  readonly #kept: LRUCache<string, Value>;
  readonly #seen = new BoundedCache<true>({ max: maxSeen });

  /** `bytesOf`: about how many bytes of memory a value and its text take, of `maxSize` for all. */
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

  /** Whether a text was noted, among the last few thousand. */
  wasSeen(text: string): boolean {
    return this.#seen.get(digestOf(text)) === true;
  }

  keep(text: string, value: Value): void {
    this.#kept.set(text, value);
  }
}

/** SHA-256 of its UTF-16: a caller cannot make two texts with one digest. In UTF-8 all lone surrogates are the same. */
export function digestOf(text: string): string {
  return hash('sha256', Buffer.from(text, 'utf16le'), 'base64');
}

const entryBytes = 500;
/** Two for a character that is not Latin-1. */
const characterBytes = 2;
/** A token with its share of the nodes: as measured 250 to 525, the most where every token is a field. */
const tokenBytes = 525;
/** Comments are kept as tokens that no node is about. */
const commentBytes = 90;
/** As measured 740 to 990 with what is counted one by one. */
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

/** About how many bytes a plan and its text take: its steps are more than the fields of the text where fragments are spread. */
function planBytes(plan: KnownPlan, text: string): number {
  return entryBytes + characterBytes * text.length + (plan.type === 'none' ? 0 : bytesOfSteps(plan.steps));
}

function bytesOfSteps(steps: readonly Step[]): number {
  let bytes = 0;
  for (const { args, positions, selection, fields, members } of steps) {
    bytes += stepBytes + slotBytes * positions.length;
    for (const argument of args) if (argument.from === 'document') bytes += heldBytes(argument.value);
    const selected = members ? [...members.byType.values()] : fields ? [{ fields, selection }] : [];
    for (const one of selected) bytes += characterBytes * (one.selection?.length ?? 0) + bytesOfSteps(one.fields);
  }
  return bytes;
}
