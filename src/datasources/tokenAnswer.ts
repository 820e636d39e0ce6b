import * as z from 'zod';
import type { Codec, Entry } from '../cache/StoredEntries.js';
import { GatewayError } from '../errors/errors.js';
import type { Runtime } from '../process/Runtime.js';
import type { Reading } from './freshness.js';
import { storedTokenRecord, type TokenRecord } from './wire.js';

const absenceMs = 15_000; // how long an id that the service does not know is remembered
const longestAbsenceMs = 900_000; // the same, at most, when there are very many such ids
const usualAbsencesPerHour = 10;

const storedAnswer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('record'), record: storedTokenRecord, unchangedSince: z.number() }),
  z.object({ kind: z.literal('no-such-taxpayer'), forMs: z.number().max(longestAbsenceMs).default(absenceMs) }),
]);

/** What the service said about a taxpayer's token. A 404 is remembered as well, but only briefly. */
export type TokenAnswer = z.output<typeof storedAnswer>;
export type TokenEntry = Entry<TokenAnswer>;

/** A record as it is shown. */
export interface TokenView {
  readonly record: TokenRecord;
  /** Epoch milliseconds. */
  readonly fetchedAt: number;
  /** How long it is fresh, from `fetchedAt`, in milliseconds. */
  readonly freshMs: number;
  /** Whether it is shown past its freshness because the service could not answer, or after the service refused its token. */
  readonly stale: boolean;
}

/** How an answer is stored. */
export const tokenAnswerCodec: Codec<TokenAnswer> = {
  encode(answer) {
    if (answer.kind !== 'record') return answer;
    return { ...answer, record: { ...answer.record, accessToken: answer.record.accessToken.reveal() } };
  },
  decode: (stored) => storedAnswer.parse(stored),
};

/** @throws GatewayError NOT_FOUND */
export function knownOf(answer: TokenAnswer): Extract<TokenAnswer, { kind: 'record' }> {
  if (answer.kind === 'record') return answer;
  throw new GatewayError('NOT_FOUND', 'The service knows no such taxpayer', { reason: 'HTTP 404' });
}

export function notAuthorized(): GatewayError {
  const message = "The service refuses this taxpayer's token, a new one included";
  return new GatewayError('TAXPAYER_NOT_AUTHORIZED', message, {
    reason: "HTTP 401 to the taxpayer's token, a new one too",
  });
}

export function readingOf({ value, fetchedAt }: TokenEntry): Reading | undefined {
  return value.kind === 'record' ? { ...value, fetchedAt } : undefined;
}

/** Decides how long an unknown id is remembered: longer when there are many, because each costs a call. */
export class Absences {
  /** Unknown ids met in the present clock hour. */
  #met = { hour: Number.NaN, count: 0 };

  constructor(private readonly runtime: Pick<Runtime, 'now'>) {}

  /** Counts one more unknown id, and returns how long to remember it, in milliseconds. */
  nextMs(): number {
    const hour = Math.floor(this.runtime.now() / 3_600_000);
    this.#met = { hour, count: hour === this.#met.hour ? this.#met.count + 1 : 1 };
    return Math.min(longestAbsenceMs, absenceMs * Math.max(1, this.#met.count / usualAbsencesPerHour));
  }
}

/** Names of a taxpayer's entries in the store: the answer about the token, and the mark of a refused token. */
export const tokenNames = (id: string) => ({ answer: ['token', id], refusal: ['token', 'refused', id] });
