import * as z from 'zod';
import type { Codec, Entry } from '../cache/Entry.js';
import { GatewayError } from '../errors/errors.js';
import { storedTokenRecord, type TokenRecord } from './wire.js';

/** How long an id that the service does not know is remembered, in milliseconds. */
export const absenceMs = 30_000;

const storedAnswer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('record'), record: storedTokenRecord, unchangedForMs: z.number() }),
  z.object({ kind: z.literal('no-such-taxpayer') }),
]);

/** What the service said about a taxpayer's token. A 404 is remembered as well, but only briefly. */
export type TokenAnswer = z.output<typeof storedAnswer>;
/** With the view that was made of it, kept for the next reader. It is never stored. */
export type TokenEntry = Entry<TokenAnswer> & { view?: TokenView };

/** A record as it is shown. */
export interface TokenView {
  readonly record: TokenRecord;
  /** Epoch milliseconds. */
  readonly fetchedAt: number;
  /** The same by the monotonic clock. */
  readonly readAt: number;
  /** How long it is fresh, from `readAt`, in milliseconds. */
  readonly freshMs: number;
  /** Whether it is shown past its freshness because the service could not answer. */
  readonly stale: boolean;
}

/** How an answer is stored. */
export const tokenAnswerCodec: Codec<TokenAnswer> = {
  encode(answer) {
    if (answer.kind !== 'record') return answer;
    return { ...answer, record: { ...answer.record, accessToken: answer.record.accessToken.reveal() } };
  },
  decode: storedAnswer.parse,
};

/** @throws GatewayError NOT_FOUND */
export function knownOf(answer: TokenAnswer): Extract<TokenAnswer, { kind: 'record' }> {
  if (answer.kind === 'record') return answer;
  throw new GatewayError('NOT_FOUND', 'The service knows no such taxpayer', { reason: 'HTTP 404' });
}

export function notAuthorized(): GatewayError {
  const message = "The service refuses access to this taxpayer's data, also with a new token of theirs";
  return new GatewayError('TAXPAYER_NOT_AUTHORIZED', message, {
    reason: "HTTP 401 to the taxpayer's token, a new one too",
  });
}

/** The name of the cool-down that follows a refused token of a taxpayer. */
export const refusalName = (id: string) => ['token', 'refused', id];
