import { describe, expect, it } from '@jest/globals';
import { identifierReader } from '../../src/datasources/identifiers.js';
import { decoders } from '../../src/datasources/wire.js';
import type { GatewayError } from '../../src/errors/errors.js';

const ids = identifierReader(16);
const taxpayer = ids.taxpayerId('taxpayer-1');
const job = ids.jobId('job-1');
const decode = decoders(4);
const record = { access_token: 'token-1', taxpayer_id: 'taxpayer-1', provider_id: 'irs', status: 'CREATED' };
const status = { status: 'processing', jobId: 'job-1', taxpayerId: 'taxpayer-1', name: 'Refresh' };
const link = { id: 'link-1', url: 'https://service.example/link-1' };

function errorOf(work: () => unknown): GatewayError {
  try {
    work();
  } catch (error) {
    return error as GatewayError;
  }
  throw new Error('It was taken');
}

describe('A token record of the service', () => {
  it('is kept under our names, with null for what is missing', () => {
    const { accessToken, ...rest } = decode.tokenRecord(record, taxpayer);
    expect(accessToken.reveal()).toBe('token-1');
    expect(rest).toEqual({
      ...{ taxpayerId: taxpayer, name: null, metadata: null, providerId: 'irs', createdAt: null, status: 'CREATED' },
    });
    const full = { ...record, name: 'Nobody', metadata: { crm: { ids: [1] } }, created_at: '2026-01-05T10:00:00Z' };
    expect(decode.tokenRecord(full, taxpayer)).toMatchObject({
      ...{ name: 'Nobody', metadata: { crm: { ids: [1] } }, createdAt: '2026-01-05T10:00:00Z' },
    });
  });

  it.each([
    ['2026-01-05T10:00:00', '2026-01-05T10:00:00Z'],
    ['2026-01-05T10:00:00.5', '2026-01-05T10:00:00.5Z'],
    ['2026-01-05T10:00:00+02:00', '2026-01-05T10:00:00+02:00'],
    ['2026-01-05T10:00', '2026-01-05T10:00:00Z'],
    ['2026-01-05 10:00:00z', '2026-01-05T10:00:00Z'],
    ['2026-01-05t10:00:00-0330', '2026-01-05T10:00:00-03:30'],
    ['2026-01-05T10:00:00+02', '2026-01-05T10:00:00+02:00'],
    ['2026-01-05', '2026-01-05'],
  ])('takes %j for %j', (created, createdAt) => {
    expect(decode.tokenRecord({ ...record, created_at: created }, taxpayer)).toMatchObject({ createdAt });
  });

  it.each([
    ['name', { name: {} }, 'name: expected string, found object'],
    ['metadata', { metadata: [] }, 'metadata: array of another form'],
    ['metadata', { metadata: 'text' }, 'metadata: string of another form'],
    [
      'metadata',
      { metadata: { a: { b: { c: { d: { e: 1 } } } } } },
      'metadata is nested more deeply than MAX_METADATA_DEPTH',
    ],
    ['metadata', { metadata: { crm: { ids: [Infinity] } } }, 'metadata: a number beyond 2^53'],
    ['createdAt', { created_at: '5 January' }, 'created_at: string of another form'],
    ['createdAt', { created_at: '2026-02-30T10:00:00Z' }, 'created_at: string of another form'],
    ['createdAt', { created_at: '2026-01-05T' }, 'created_at: string of another form'],
    ['createdAt', { created_at: '' }, 'created_at: string of another form'],
    ['createdAt', { created_at: 1767607200 }, 'created_at: expected string, found number'],
  ] as const)('has no %s given as %j, and says why', (field, change, reason) => {
    const decoded = decode.tokenRecord({ ...record, ...change }, taxpayer);
    expect(decoded).toMatchObject({ status: 'CREATED', [field]: null, faults: { [field]: { reason } } });
    expect(decode.tokenRecord(record, taxpayer)).not.toHaveProperty('faults');
  });

  it('may have metadata that is nested as deeply as callers may send it', () => {
    const metadata = { a: { b: { c: { d: 1 } } } };
    expect(decode.tokenRecord({ ...record, metadata }, taxpayer)).toMatchObject({ metadata });
  });

  it.each([
    [{ access_token: undefined }, 'access_token: missing'],
    [{ access_token: '' }, 'access_token: string of another form'],
    [{ access_token: 'two words' }, 'access_token: string of another form'],
    [{ access_token: `before\ntoken` }, 'access_token: string of another form'],
    [{ access_token: 'x'.repeat(16_001) }, 'access_token: string that is too long'],
    [{ access_token: 7 }, 'access_token: expected string, found number'],
    [{ status: null }, 'status: expected string, found null'],
    [{ provider_id: [] }, 'provider_id: expected string, found array'],
    [{ taxpayer_id: 'somebody-else' }, 'taxpayer_id: of another taxpayer'],
  ])('breaks the contract with %j', (change, reason) => {
    expect(errorOf(() => decode.tokenRecord({ ...record, ...change }, taxpayer))).toMatchObject({
      ...{ code: 'UPSTREAM_INVALID_RESPONSE', reason },
      message: 'The service gave an answer that breaks its contract',
    });
  });

  it('names all that is wrong, and the body where that is no object', () => {
    const wrong = { ...record, status: 1, provider_id: undefined };
    expect(errorOf(() => decode.tokenRecord(wrong, taxpayer)).reason).toBe(
      'provider_id: missing; status: expected string, found number',
    );
    expect(errorOf(() => decode.tokenRecord([], taxpayer)).reason).toBe('the body: expected object, found array');
  });

  it('takes the longest access token that fits into a header', () => {
    const access_token = 'x'.repeat(16_000);
    expect(decode.tokenRecord({ ...record, access_token }, taxpayer).accessToken.reveal()).toBe(access_token);
  });
});

describe("A job's status of the service", () => {
  it('is kept as it is', () => {
    expect(decode.jobStatus(status, taxpayer, job)).toEqual(status);
  });

  it.each([
    [{ taxpayerId: 'somebody-else' }, 'taxpayerId: of another taxpayer'],
    [{ jobId: 'job-2' }, 'jobId: of another job'],
    [{ name: undefined }, 'name: missing'],
    [{ status: 1 }, 'status: expected string, found number'],
  ])('breaks the contract with %j', (change, reason) => {
    expect(errorOf(() => decode.jobStatus({ ...status, ...change }, taxpayer, job))).toMatchObject({ reason });
  });
});

describe('A client link of the service', () => {
  it.each(['https://service.example/link-1', 'http://127.0.0.1/', ' HTTPS://service.example'])(
    'may have the URL %j',
    (url) => {
      expect(decode.clientLink({ ...link, url })).toEqual({ ...link, url });
    },
  );

  it.each([
    [{ id: '' }, /^id: /],
    [{ id: undefined }, /^id: missing$/],
    [{ url: 'javascript:alert(1)//https://service.example' }, /^url: string of another form$/],
    [{ url: 'https://' }, /^url: string of another form$/],
    [{ url: 7 }, /^url: expected string, found number$/],
  ])('breaks the contract with %j', (change, reason) => {
    expect(errorOf(() => decode.clientLink({ ...link, ...change })).reason).toMatch(reason);
  });
});

describe('An id of a caller', () => {
  it.each(['a', 'taxpayer-1', 'a:b~c_d', 'Grüße', '€uro', 'x'.repeat(16)])('may be %j', (id) => {
    expect(ids.taxpayerId(id)).toBe(id);
    expect(ids.jobId(id)).toBe(id);
  });

  it.each([
    ['', 'must not be empty'],
    ['x'.repeat(17), 'must have at most 16 characters'],
    ['ü'.repeat(17), 'must have at most 16 characters'],
    ['.', 'must not be a dot segment'],
    ['..', 'must not be a dot segment'],
    ['a/b', 'must not contain control characters or any of / \\ % ? #'],
    ['a\\b', 'must not contain control characters or any of / \\ % ? #'],
    ['a%b', 'must not contain control characters or any of / \\ % ? #'],
    ['a?b', 'must not contain control characters or any of / \\ % ? #'],
    ['a#b', 'must not contain control characters or any of / \\ % ? #'],
    ['a\u0000', 'must not contain control characters or any of / \\ % ? #'],
    ['a\u009f', 'must not contain control characters or any of / \\ % ? #'],
    ['\ud800', 'must be well-formed Unicode'],
    [' \u200b', 'must not be blank'],
    [' a', 'must not begin or end with white space'],
    ['a ', 'must not begin or end with white space'],
  ])('may not be %j, and is named: %s', (id, problem) => {
    for (const [read, path] of [
      [ids.taxpayerId, 'taxpayerId'],
      [ids.jobId, 'jobId'],
    ] as const) {
      expect(errorOf(() => read(id))).toMatchObject({ code: 'BAD_USER_INPUT', message: `${path} ${problem}` });
    }
    expect(errorOf(() => ids.taxpayerId(id, 'where')).message).toBe(`where ${problem}`);
  });

  it('may be anything of the right size as the key of a creation', () => {
    for (const key of ['a/b', ' ', '..', 'x'.repeat(16)]) expect(ids.idempotencyKey(key)).toBeUndefined();
    expect(errorOf(() => ids.idempotencyKey('')).message).toBe('input.idempotencyKey must not be empty');
    expect(errorOf(() => ids.idempotencyKey('x'.repeat(17))).message).toBe(
      'input.idempotencyKey must have at most 16 characters',
    );
  });
});
