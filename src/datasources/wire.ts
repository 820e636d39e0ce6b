import { z } from 'zod';
import { Secret } from '../config/secret.js';
import { GatewayError } from '../errors/errors.js';
import { isNestedWithin, pathOfInfinity } from '../json.js';
import type { ServiceAnswer } from '../upstream/readAnswer.js';
import type { JobId, TaxpayerId } from './identifiers.js';

/** Request body of client link creation, in the service's words (interface, 2.2). Absent members stay absent. */
export interface ClientLinkRequest {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly settings?: {
    readonly flowType?: string;
    readonly transcripts?: Readonly<Partial<Record<TranscriptKey, readonly string[]>>>;
    readonly prefillData?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  };
}

export type TranscriptKey = 'ACTR' | 'RECA' | 'WAID' | 'VENF' | 'W2' | '1095-A' | 'NOTICE';

/** Interface, 2.1. */
export interface ClientLink {
  readonly id: string;
  readonly url: string;
}

/** Interface, 2.3. */
export interface TokenRecord {
  readonly accessToken: Secret;
  readonly taxpayerId: string;
  readonly name: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** Where in the metadata a number stands that a double cannot hold, as `crm.ids.0`. There is no metadata then. */
  readonly lostNumber?: string;
  /** The service's own value, whether we know it or not. */
  readonly providerId: string;
  /** ISO 8601. */
  readonly createdAt: string | null;
  /** The service's own value, whether we know it or not. */
  readonly status: string;
}

/** Interface, 2.5. */
export interface JobStatus {
  readonly taxpayerId: string;
  readonly jobId: string;
  readonly name: string;
  /** The service's own value, whether we know it or not. */
  readonly status: string;
}

/** Longest access token, in characters: servers refuse headers of not much more. */
const maxAccessTokenLength = 8192;

/** Only what may stand in an `Authorization` header (RFC 6750, section 2.1, widened to visible ASCII). */
export const accessToken = z
  .string()
  .max(maxAccessTokenLength)
  .regex(/^[\x21-\x7e]+$/);

export const jsonObject = z.custom<Record<string, unknown>>(
  (v) => typeof v === 'object' && v !== null && !Array.isArray(v),
);

/** `Date.parse` makes a date of almost any text with a number in it; without a zone it asks the machine for one. */
const isoDate = z
  .union([z.iso.datetime({ offset: true, local: true }), z.iso.date()])
  .transform((text) => (/T.*(Z|[+-]\d\d:\d\d)$|^[^T]*$/.test(text) ? text : `${text}Z`));

const clientLink = z.object({
  id: z.string().min(1),
  url: z.string().refine((text) => /^\s*https?:/i.test(text) && URL.canParse(text)),
});

// The interface marks nothing of this record as required; without these four it is of no use.
const tokenRecord = z.object({
  access_token: accessToken,
  taxpayer_id: z.string(),
  provider_id: z.string(),
  status: z.string(),
  name: z.string().nullish(),
  metadata: jsonObject.nullish(),
  created_at: isoDate.nullish(),
});

const jobStatus = z.object({ status: z.string(), jobId: z.string(), taxpayerId: z.string(), name: z.string() });

/** @throws GatewayError UPSTREAM_INVALID_RESPONSE */
export function decodeClientLink(answer: ServiceAnswer, maxDepth: number): ClientLink {
  return decode(clientLink, answer, maxDepth);
}

/** @throws GatewayError UPSTREAM_INVALID_RESPONSE, also for a record of another taxpayer than `expected` */
export function decodeTokenRecord(answer: ServiceAnswer, expected: TaxpayerId, maxDepth: number): TokenRecord {
  const record = decode(tokenRecord, answer, maxDepth);
  if (record.taxpayer_id !== expected) throw contractBreach('another taxpayer');
  const lostNumber = pathOfInfinity(record.metadata);
  return {
    accessToken: new Secret(record.access_token),
    taxpayerId: record.taxpayer_id,
    name: record.name ?? null,
    ...(lostNumber === undefined ? { metadata: record.metadata ?? null } : { metadata: null, lostNumber }),
    providerId: record.provider_id,
    createdAt: record.created_at ?? null,
    status: record.status,
  };
}

/** @throws GatewayError UPSTREAM_INVALID_RESPONSE, also for a status of another taxpayer or job than expected */
export function decodeJobStatus(
  answer: ServiceAnswer,
  taxpayerId: TaxpayerId,
  jobId: JobId,
  maxDepth: number,
): JobStatus {
  const status = decode(jobStatus, answer, maxDepth);
  if (status.taxpayerId !== taxpayerId || status.jobId !== jobId) throw contractBreach('another taxpayer or job');
  return status;
}

function decode<T>(schema: z.ZodType<T>, answer: ServiceAnswer, maxDepth: number): T {
  if (!isNestedWithin(answer.json, maxDepth)) throw contractBreach('nested too deeply');
  const result = schema.safeParse(answer.json);
  if (!result.success) throw contractBreach(result.error.issues.map((issue) => issue.path.join('.')).join(', '));
  return result.data;
}

/** `found` names members, never their values. */
function contractBreach(found: string): GatewayError {
  return new GatewayError('UPSTREAM_INVALID_RESPONSE', 'The service gave an answer that breaks its contract', {
    cause: { found },
  });
}
