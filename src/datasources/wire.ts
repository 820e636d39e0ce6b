import * as z from 'zod';
import { Secret } from '../config/secret.js';
import { GatewayError } from '../errors/errors.js';
import { isNestedWithin, pathOfInfinity } from '../json.js';
import type { JobId, TaxpayerId } from './identifiers.js';

/** Request body of client link creation, in the service's words (interface, 2.2). Absent members stay absent. */
export type ClientLinkRequest = Readonly<Partial<Record<'metadata' | 'settings', Readonly<Record<string, unknown>>>>>;

/** Only what may stand in an `Authorization` header (RFC 6750, 2.1, widened to visible ASCII) and is not too long for one: Node.js takes 16 KiB of headers. */
const accessToken = z
  .string()
  .max(16_000)
  .regex(/^[\x21-\x7e]+$/)
  .transform((text) => new Secret(text));

const jsonObject = z.custom<Readonly<Record<string, unknown>>>(
  (v) => typeof v === 'object' && v !== null && !Array.isArray(v),
);

/** In place of `Date.parse`, which accepts almost any text with a number, and assumes the machine's zone if none is given. */
const isoDate = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);
const isoForm = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(?:(Z)|([+-]\d\d):?(\d\d)?)?)?$/i;

/** Converts any usual form of ISO 8601 to RFC 3339; UTC if no zone is given. */
const createdAt = z.string().transform((text, { addIssue }) => {
  const [, day, minutes, seconds = ':00', , hours, rest = '00'] = isoForm.exec(text) ?? [];
  const date = minutes === undefined ? day : `${day}T${minutes}${seconds}${hours ? `${hours}:${rest}` : 'Z'}`;
  if (date !== undefined && isoDate.safeParse(date).success) return date;
  addIssue('not ISO 8601');
  return z.NEVER;
});

const clientLink = z.object({
  id: z.string().min(1),
  url: z.string().refine((text) => /^\s*https?:/i.test(text) && URL.canParse(text)),
});
export type ClientLink = Readonly<z.output<typeof clientLink>>;

/** Interface, 2.3, which marks nothing as required; without the first four members the record is of no use. */
const tokenRecord = z.object({
  access_token: accessToken,
  taxpayer_id: z.string(),
  provider_id: z.string(),
  status: z.string(),
  name: z.string().nullish(),
  metadata: jsonObject.nullish(),
  created_at: createdAt.nullish(),
});

/** A token record as we name and keep it. Provider and status are the service's own values, known to us or not. */
export const storedTokenRecord = z.object({
  accessToken,
  taxpayerId: z.string(),
  name: z.string().nullable(),
  metadata: jsonObject.nullable(),
  /** Path of a number in the metadata that a double cannot hold, such as `crm.ids.0`; `metadata` is then null. */
  lostNumber: z.string().exactOptional(),
  providerId: z.string(),
  /** ISO 8601. */
  createdAt: z.string().nullable(),
  status: z.string(),
});
export type TokenRecord = Readonly<z.output<typeof storedTokenRecord>>;

/** Interface, 2.5; `status` is the service's own value, whether we know it or not. */
export const jobStatus = z.object({ status: z.string(), jobId: z.string(), taxpayerId: z.string(), name: z.string() });
export type JobStatus = Readonly<z.output<typeof jobStatus>>;

/**
 * Decodes the service's answers, nested at most `maxDepth` levels. Each function throws GatewayError
 * UPSTREAM_INVALID_RESPONSE for an answer that breaks the contract, one about another taxpayer or job included.
 */
export function decoders(maxDepth: number) {
  function decode<T>(schema: z.ZodType<T>, json: unknown): T {
    if (!isNestedWithin(json, maxDepth)) throw contractBreach('nested more deeply than MAX_METADATA_DEPTH');
    const result = schema.safeParse(json);
    if (!result.success) throw contractBreach(result.error.issues.map((issue) => mistakeIn(json, issue)).join('; '));
    return result.data;
  }
  return {
    clientLink: (json: unknown): ClientLink => decode(clientLink, json),

    tokenRecord(json: unknown, expected: TaxpayerId): TokenRecord {
      const record = decode(tokenRecord, json);
      if (record.taxpayer_id !== expected) throw contractBreach('taxpayer_id: of another taxpayer');
      const lostNumber = pathOfInfinity(record.metadata);
      return {
        accessToken: record.access_token,
        taxpayerId: record.taxpayer_id,
        name: record.name ?? null,
        ...(lostNumber === undefined ? { metadata: record.metadata ?? null } : { metadata: null, lostNumber }),
        providerId: record.provider_id,
        createdAt: record.created_at ?? null,
        status: record.status,
      };
    },

    jobStatus(json: unknown, taxpayerId: TaxpayerId, jobId: JobId): JobStatus {
      const job = decode(jobStatus, json);
      if (job.taxpayerId !== taxpayerId) throw contractBreach('taxpayerId: of another taxpayer');
      if (job.jobId !== jobId) throw contractBreach('jobId: of another job');
      return job;
    },
  };
}

/** `reason` names members and kinds, never values. */
export function contractBreach(reason: string): GatewayError {
  const message = 'The service gave an answer that breaks its contract';
  return new GatewayError('UPSTREAM_INVALID_RESPONSE', message, { reason });
}

/** Which member is wrong and how, as `status: expected string, found null`. Only members of the schemas above are named. */
function mistakeIn(json: unknown, issue: z.core.$ZodIssue): string {
  const where = issue.path.join('.') || 'the body';
  const found = issue.path.reduce<unknown>((value, step) => (value as Record<PropertyKey, unknown>)[step], json);
  if (found === undefined) return `${where}: missing`;
  if (issue.code === 'invalid_type') return `${where}: expected ${issue.expected}, found ${kindOf(found)}`;
  return `${where}: ${kindOf(found)} ${issue.code === 'too_big' ? 'that is too long' : 'of another form'}`;
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}
