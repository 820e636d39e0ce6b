import * as z from 'zod';
import type { Codec, Entry } from '../cache/Entry.js';
import { GatewayError } from '../errors/errors.js';
import { storedTokenRecord } from './wire.js';

/** How long an id that the service does not know is remembered, in milliseconds. */
export const absenceMs = 30_000;

const storedReading = z.object({ record: storedTokenRecord, unchangedForMs: z.number() });
/** A record, and for how long it had been unchanged when it was read, in milliseconds. */
export type TokenReading = z.output<typeof storedReading>;

/** What the service said about a taxpayer's token. Null: it knows no such taxpayer, which is also remembered, but only briefly. */
export type TokenAnswer = TokenReading | null;
export type TokenEntry = Entry<TokenAnswer>;

/**
 * A record as it is shown; `stale`: past its freshness, because the service could not answer. Memory always gives the same object,
 * so that `Vocabulary` translates it once.
 */
export type TokenView = Entry<TokenReading> & { readonly stale?: boolean };

/** How an answer is stored. */
export const tokenAnswerCodec: Codec<TokenAnswer> = {
  encode(answer) {
    if (answer === null) return null;
    return { ...answer, record: { ...answer.record, accessToken: answer.record.accessToken.reveal() } };
  },
  decode: storedReading.nullable().parse,
};

/** Whether the service knew the taxpayer. */
export const hasRecord = (entry: TokenEntry): entry is TokenView => entry.value !== null;

/** The entry as it is shown. @throws GatewayError NOT_FOUND */
export function viewOf(entry: TokenEntry): TokenView {
  if (hasRecord(entry)) return entry;
  throw new GatewayError('NOT_FOUND', 'The service knows no such taxpayer', { reason: 'HTTP 404' });
}

export function notAuthorized(): GatewayError {
  const message = "The service refuses access to this taxpayer's data, even with a new token";
  return new GatewayError('TAXPAYER_NOT_AUTHORIZED', message, {
    reason: "HTTP 401 to the taxpayer's token, a new one too",
  });
}

/** The name of the cool-down that follows a refused token of a taxpayer. */
export const refusalName = (id: string) => ['token', 'refused', id];
