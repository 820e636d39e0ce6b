import * as z from 'zod';
import { Secret } from '../config/Secret.js';
import { NoAnswer } from '../network/exchange.js';
import { isObject } from '../process/json.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import { faultOfMetadata } from './metadata.js';

/** Request body of client link creation, in the service's words (interface, 2.2). Absent members stay absent. */
export interface ClientLinkRequest {
  readonly metadata?: JsonObject;
  readonly settings?: JsonObject;
}

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Only what may stand in an `Authorization` header (RFC 6750, 2.1, widened to visible ASCII) and is not too long for one:
 * Node.js takes 16 KiB of headers.
 */
const accessToken = z
  .string()
  .max(16_000)
  .regex(/^[\x21-\x7e]+$/)
  .transform((text) => new Secret(text));

/** A value of an enum that the service may extend. A longer one breaks the contract. */
const word = z.string().max(1000);

const jsonObject = z.custom<JsonObject>(isObject);

/**
 * RFC 3339, also with a space before the time or an offset without a colon, as some services write it; UTC where no zone is
 * given. In place of `Date.parse`, which accepts almost any text with a number, and then assumes the machine's zone.
 */
const isoTime = z
  .string()
  .transform((text) =>
    text
      .toUpperCase()
      .replace(' ', 'T')
      .replace(/([+-]\d\d)(\d\d)$/, '$1:$2'),
  )
  .pipe(z.union([z.iso.datetime({ offset: true, local: true }), z.iso.date()]))
  .transform((text) => text.replace(/T[\d:.]+$/, '$&Z'))
  .refine((text) => /^\d/.test(new Date(text).toJSON())); // in UTC, the year may lie beyond 0 to 9999, and then has a sign

const clientLink = z.object({
  id: z.string().min(1),
  url: z.string().refine((text) => /^\s*https?:/i.test(text) && URL.canParse(text)),
});
export type ClientLink = Readonly<z.output<typeof clientLink>>;

/** Interface, 2.3, as it is answered. It marks nothing as required, but without these members the record is of no use. */
const answeredTokenRecord = z.looseObject({
  access_token: accessToken,
  taxpayer_id: z.string(),
  provider_id: word,
  status: word,
});

/** The members that a record can do without. */
const details = { name: z.string().nullish(), metadata: jsonObject.nullish(), createdAt: isoTime.nullish() };

/** Why a member cannot be shown: `message` for callers, `reason` for our own log. */
const fault = z.object({ message: z.string(), reason: z.string() });
type Fault = z.output<typeof fault>;

/**
 * A token record as we name and keep it. Provider and status are the service's own values, known to us or not. A member added
 * later needs `.default(null)`: records that an earlier release stored lack it, and without a default they would count as
 * absent, which costs one call per taxpayer. Also leave it out of `digestOf` if a change of it is no change of the record. For
 * example, the time at which the token expires changes with each token, so no record would be fresh for longer than a minute.
 */
export const storedTokenRecord = z.object({
  accessToken,
  taxpayerId: z.string(),
  name: z.string().nullable(),
  metadata: jsonObject.nullable(),
  providerId: z.string(),
  /** ISO 8601. */
  createdAt: z.string().nullable(),
  status: z.string(),
  /** The members that are null because what the service gave breaks its contract. */
  faults: z.object({ name: fault, metadata: fault, createdAt: fault }).partial().exactOptional(),
});
export type TokenRecord = Readonly<z.output<typeof storedTokenRecord>>;

/**
 * Interface, 2.5, as it is answered and as we keep it; `status` is the service's own value, whether we know it or not. A member
 * added later needs `.default(null)`, as in {@link storedTokenRecord}.
 */
export const jobStatus = z.object({ status: word, jobId: z.string(), taxpayerId: z.string(), name: z.string() });
export type JobStatus = Readonly<z.output<typeof jobStatus>>;

// These decode the service's answers. Each throws GatewayError UPSTREAM_INVALID_RESPONSE for an answer that breaks the
// contract, one about another taxpayer or job included. A wrong member that a record can do without becomes null, and `faults`
// says why.

export function decodeClientLink(json: unknown): ClientLink {
  return decode(clientLink, json);
}

export function decodeTokenRecord(json: unknown, expected: TaxpayerId): TokenRecord {
  const record = decode(answeredTokenRecord, json);
  if (!isSameId(record.taxpayer_id, expected)) throw contractBreach('taxpayer_id: of another taxpayer');
  const faults: Partial<Record<keyof typeof details, Fault>> = {};
  /** The value of a detail; null, which is then among the faults, if it cannot be shown. */
  const detail = <T>(name: keyof typeof details, schema: z.ZodType<T | null | undefined>, member: string = name) => {
    const { data, error } = schema.safeParse(record[member]);
    if (error) faults[name] = { message: brokenDetail, reason: mistakesIn(error, member) };
    return data ?? null;
  };
  const name = detail('name', details.name);
  const createdAt = detail('createdAt', details.createdAt, 'created_at');
  const given = detail('metadata', details.metadata);
  const broken = faultOfMetadata(given);
  if (broken) {
    faults.metadata = { message: `metadata${broken.place} ${broken.message}`, reason: `metadata ${broken.message}` };
  }
  return {
    accessToken: record.access_token,
    taxpayerId: expected,
    name,
    metadata: broken ? null : given,
    providerId: record.provider_id,
    createdAt,
    status: record.status,
    ...(Object.keys(faults).length > 0 && { faults }),
  };
}

export function decodeJobStatus(json: unknown, taxpayerId: TaxpayerId, jobId: JobId): JobStatus {
  const job = decode(jobStatus, json);
  if (!isSameId(job.taxpayerId, taxpayerId)) throw contractBreach('taxpayerId: of another taxpayer');
  if (!isSameId(job.jobId, jobId)) throw contractBreach('jobId: of another job');
  return { ...job, taxpayerId, jobId };
}

const uuid = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i;

/** A UUID means the same in upper and lower case (RFC 9562, section 4), so that a service may answer in another one. */
const isSameId = (one: string, other: string): boolean =>
  one === other || (uuid.test(one) && one.toLowerCase() === other.toLowerCase());

function decode<T>(schema: z.ZodType<T>, json: unknown): T {
  const result = schema.safeParse(json);
  if (!result.success) throw contractBreach(mistakesIn(result.error, 'the body'));
  return result.data;
}

const brokenDetail = 'The service gave a value that breaks its contract';

/** `reason` names members and kinds, never values. */
const contractBreach = (reason: string) => new NoAnswer('invalid', reason);

/**
 * Which members are wrong and how, as `status: Invalid input: expected string, received null`. Only members of the schemas
 * above are named; the messages of zod hold kinds and bounds, never a value.
 */
const mistakesIn = ({ issues }: z.ZodError, whole: string) =>
  issues.map(({ path, message }) => `${path.join('.') || whole}: ${message}`).join('; ');
