import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { upstreamOnlyText } from '../../../src/sandbox/answers.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { type Sent, sandboxClient } from '../../support/sandboxClient.js';

const credentials = { clientId: 'test-client', clientSecret: 'test-secret-not-real' };
const authorized = '44444444-4444-4444-8444-444444444444';
const tokenPath = `/auth/tax-payer/${authorized}/token`;

let sandbox: Sandbox;
const { call, asClient, createLink, readToken, readJob } = sandboxClient(() => sandbox);

beforeEach(async () => {
  sandbox = await startSandbox(credentials);
});
afterEach(() => sandbox.stop());

describe('The sandbox serves the interface of the service:', () => {
  it('creates a client link whose hosted page exists', async () => {
    const link = await createLink({
      metadata: { crm: { id: 7 } },
      settings: { flowType: 'full', transcripts: { '1095-A': ['2023'] } },
    });
    expect(link.status).toBe(201);
    expect(link.headers['content-type']).toBe('application/json');
    expect(link.json).toEqual({ id: expect.any(String), url: `${sandbox.url}/c/${link.json.id}` });
    expect((await call(`/c/${link.json.id}`)).status).toBe(200);
  });

  it('gives the token record of a taxpayer', async () => {
    const record = await readToken(authorized);
    expect(record.status).toBe(200);
    expect(record.json).toEqual({
      access_token: sandbox.control.taxpayer(authorized)?.accessToken,
      taxpayer_id: authorized,
      name: 'Arthur Authorized (not real)',
      metadata: { crmId: 'sandbox-crm-4', sandbox: true },
      provider_id: 'irs',
      created_at: '2024-01-04T09:00:00.000Z',
      status: 'AUTHORIZED',
    });
  });

  it('has a demo taxpayer for every status and one with an unknown provider', async () => {
    const { rateLimited, unavailable, slow, ...ids } = sandbox.demo.taxpayerIds;
    const records = await Promise.all(Object.values(ids).map((id) => readToken(id)));
    expect(new Set(records.map(({ json }) => json.status))).toEqual(
      new Set(['CREATED', 'CONSENT_RECEIVED', 'TAX_AUTHORIZATION_SUBMITTED', 'AUTHORIZED', 'REJECTED', 'COMPLETED']),
    );
    expect(new Set(records.map(({ json }) => json.provider_id))).toEqual(
      new Set(['irs', 'irs_tax_pro', 'service-sandbox', 'provider_from_the_future']),
    );
  });

  it('moves the processing demo job to completed some time after it is first read', async () => {
    const { processing } = sandbox.demo.jobs;
    let clock = Date.now();
    const time = jest.spyOn(Date, 'now').mockImplementation(() => clock);
    const first = await readJob(processing);
    expect(first.json).toEqual({ ...processing, status: 'processing', name: 'Demo refresh 3 (not real)' });
    clock += 14_999;
    expect((await readJob(processing)).json.status).toBe('processing');
    clock += 1;
    expect((await readJob(processing)).json.status).toBe('completed');
    time.mockRestore();
  });

  it('accepts its own Service-API-Version and refuses others', async () => {
    const withVersion = (version: string) =>
      call(tokenPath, { headers: { ...asClient(), 'Service-API-Version': version } });
    expect((await withVersion('2024-01-01')).status).toBe(200);
    expect((await withVersion('2023-01-01')).status).toBe(400);
  });

  const credentialHeaders = {
    authorization: `Bearer ${Buffer.from('test-client:test-secret-not-real').toString('base64')}`,
  };
  const jobPath = `/tax-payer/${authorized}/refresh/cccccccc-cccc-4ccc-8ccc-cccccccccccc`;
  const json = { ...credentialHeaders, 'content-type': 'application/json' };
  it.each<[string, number, string, Sent]>([
    ['wrong client credentials', 401, tokenPath, { headers: { authorization: 'Bearer bm86bm8=' } }],
    ['no credentials', 401, '/client-links', { method: 'POST', body: '{}' }],
    ['client credentials in place of the access token', 401, jobPath, { headers: credentialHeaders }],
    ['a missing access token', 401, jobPath, {}],
    ['an unknown taxpayer', 404, '/auth/tax-payer/nobody/token', { headers: credentialHeaders }],
    ['a body that is not JSON', 400, '/client-links', { method: 'POST', headers: json, body: '{' }],
    ['an unknown member', 422, '/client-links', { method: 'POST', headers: json, body: '{"colour":"red"}' }],
    ['null for an absent member', 422, '/client-links', { method: 'POST', headers: json, body: '{"settings":null}' }],
    ['another content type', 415, '/client-links', { method: 'POST', headers: credentialHeaders, body: '{}' }],
    [
      'a body where none belongs',
      400,
      tokenPath,
      { headers: { ...credentialHeaders, 'content-length': '2' }, body: '{}' },
    ],
    ['a query string', 400, `${tokenPath}?x=1`, { headers: credentialHeaders }],
    ['another method', 405, tokenPath, { method: 'DELETE' }],
    ['dot segments in disguise', 404, '/auth/tax-payer/%2E./token', {}],
    ['an id that is no UTF-8', 400, '/auth/tax-payer/%FF/token', {}],
  ])('refuses %s with %i and the text that must never reach a caller', async (_, status, path, sent) => {
    const answer = await call(path, sent);
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(upstreamOnlyText);
    expect(answer.headers['x-sandbox-detail']).toBe(upstreamOnlyText);
  });

  it('answers 404 for a job of another taxpayer', async () => {
    expect((await readJob({ taxpayerId: authorized, jobId: 'no-such-job' })).status).toBe(404);
    expect(
      (await readJob({ taxpayerId: sandbox.demo.taxpayerIds.completed, jobId: sandbox.demo.jobs.failed.jobId })).status,
    ).toBe(404);
  });
});
