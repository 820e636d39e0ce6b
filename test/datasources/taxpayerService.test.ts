import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import { identifierReader } from '../../src/datasources/identifiers.js';
import { AccessTokenRefused, TaxpayerService } from '../../src/datasources/TaxpayerService.js';
import type { GatewayError } from '../../src/errors/errors.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { CallGate } from '../../src/upstream/CallGate.js';
import { ResilientFetch } from '../../src/upstream/ResilientFetch.js';

const ids = identifierReader(256);
const [taxpayer, job] = [ids.taxpayerId('taxpayer-1'), ids.jobId('job-1')];
const answers = {
  link: { id: 'link-1', url: 'https://service.example/link-1' },
  record: { access_token: 'token-1', taxpayer_id: taxpayer, provider_id: 'irs', status: 'active' },
  status: { status: 'processing', jobId: job, taxpayerId: taxpayer, name: 'Refresh' },
};

describe('TaxpayerService', () => {
  let server: Server;
  let http: ResilientFetch;
  let service: TaxpayerService;
  let next: { status: number; body?: unknown };
  let requests: IncomingMessage[];
  let seen: unknown[];
  beforeEach(async () => {
    [requests, seen] = [[], []];
    server = createServer((request, response) => {
      requests.push(request);
      request.resume().on('end', () => {
        response.writeHead(next.status, { 'Content-Type': 'application/json' }).end(JSON.stringify(next.body ?? {}));
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    http = new ResilientFetch({ timeoutMs: 2000, deadlineMs: 4000, breakerResetMs: 60_000, maxResponseBytes: 10_000 });
    const sealer = new Sealer({ from: 'client-secret', secret: new Secret('secret') });
    const store = new SealedStore({ store: new MemoryStore(), sealer, scope: [] });
    service = new TaxpayerService({
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      apiVersion: '2.0',
      credentials: () => ({ clientId: 'client', clientSecret: new Secret('secret') }),
      http,
      gate: new CallGate({ store, onClosed: (...closed) => seen.push(closed) }),
      maxDepth: 10,
      onForbidden: (endpoint) => seen.push([endpoint, 'forbidden']),
      onOutcome: (endpoint, failure) => seen.push(failure ? [endpoint, failure] : [endpoint]),
    });
  });
  afterEach(async () => {
    http.stop();
    await new Promise((resolve) => server.close(resolve));
  });

  const credential = { accessToken: new Secret('token-1'), version: 'v', fetchedAt: 0, startedAt: 0 };
  const create = (holder?: string) => service.createClientLink({ metadata: { case: 'C-1' } }, { holder });
  const read = (holder?: string) => service.tokenRecord(taxpayer, { holder });
  const look = (accessToken = 'token-1') =>
    service.refreshJob(taxpayer, job, { ...credential, accessToken: new Secret(accessToken) }, {});
  const errorOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: GatewayError) => error,
    );

  it('gives what was asked for and tells that all went well', async () => {
    next = { status: 201, body: answers.link };
    expect(await create()).toEqual(answers.link);
    next = { status: 200, body: answers.record };
    expect(await read()).toMatchObject({ taxpayerId: taxpayer, status: 'active' });
    next = { status: 200, body: answers.status };
    expect(await look()).toEqual(answers.status);
    expect(seen).toEqual([['createClientLink'], ['taxpayerToken'], ['refreshJob']]);
    expect(requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST /client-links',
      'GET /auth/tax-payer/taxpayer-1/token',
      'GET /tax-payer/taxpayer-1/refresh/job-1',
    ]);
  });

  const rejected = ['UPSTREAM_REJECTED', 'The service rejected the request'];
  const absent = ['NOT_FOUND', 'The service knows no such taxpayer or job'];
  const broken = ['UPSTREAM_INVALID_RESPONSE', 'The service gave an answer that breaks its contract'];
  it.each([
    [399, broken],
    [400, rejected],
    [404, absent],
    [499, rejected],
  ] as const)('says of a %i to a read: %j', async (status, [code, message]) => {
    next = { status };
    for (const work of [read, look]) {
      expect(await errorOf(work())).toMatchObject({ code, message, reason: `HTTP ${status}` });
    }
  });

  it.each([
    [404, rejected],
    [409, rejected],
    [200, ['OUTCOME_UNKNOWN', expect.any(String)]],
  ] as const)('says of a %i to the creation of a link: %j', async (status, [code, message]) => {
    next = { status };
    expect(await errorOf(create())).toMatchObject({ code, message });
  });

  it.each([
    ['an answer that breaks the contract', 200, 'invalid', 'access_token: missing'],
    ['a failure', 503, 'server-error', 'HTTP 503'],
  ] as const)('tells of %s, with its cause', async (_, status, kind, reason) => {
    next = { status, body: { ...answers.record, access_token: undefined } };
    await errorOf(read());
    expect(seen).toEqual([['taxpayerToken', { kind, reason: expect.stringContaining(reason) }]]);
  });

  it('tells of a link whose answer is unusable what was wrong with the answer', async () => {
    next = { status: 201, body: { id: 'link-1' } };
    expect(await errorOf(create())).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(seen).toEqual([['createClientLink', { kind: 'invalid', reason: 'url: missing' }]]);
  });

  it('tells nothing of what says nothing about the service', async () => {
    for (const status of [400, 404]) {
      next = { status };
      await errorOf(read());
    }
    next = { status: 401 };
    await errorOf(look());
    expect(seen).toEqual([]);
  });

  it.each([
    [401, true],
    [400, false],
    [431, false],
  ])('takes a %i for a refused token: %s', async (status, isRefused) => {
    next = { status };
    expect((await errorOf(look())) instanceof AccessTokenRefused).toBe(isRefused);
  });

  it('takes a 403 to a token for a refusal of that taxpayer', async () => {
    next = { status: 403 };
    expect(await errorOf(look())).toMatchObject({
      ...{ code: 'TAXPAYER_NOT_AUTHORIZED', message: 'The service refuses access to this taxpayer' },
      reason: 'HTTP 403',
    });
  });

  it('refuses a caller whose different requests met a 403 three times in a row, without a call', async () => {
    next = { status: 403 };
    const link = (n: number) => errorOf(service.createClientLink({ metadata: { n } }, { holder: 'caller-1' }));
    for (let n = 0; n < 2; n += 1) expect(await link(n)).toMatchObject({ code: 'UPSTREAM_REJECTED' });
    const refusal = { code: 'UPSTREAM_CREDENTIALS_REJECTED', reason: "HTTP 403 to this caller's requests" };
    expect(await link(2)).toMatchObject(refusal);
    expect(await link(3)).toMatchObject(refusal);
    expect(requests).toHaveLength(3);
    expect(seen).toEqual([['createClientLink', 'forbidden']]);
    next = { status: 201, body: answers.link };
    expect(await create('caller-2')).toEqual(answers.link);
    next = { status: 200, body: answers.record };
    expect(await read('caller-1')).toMatchObject({ taxpayerId: taxpayer });
  });

  it('does not count the same body again, nor a 403 before another answer', async () => {
    const link = (n: number) => errorOf(service.createClientLink({ metadata: { n } }, { holder: 'caller-1' }));
    next = { status: 403 };
    for (const n of [0, 0, 0, 1]) expect(await link(n)).toMatchObject({ code: 'UPSTREAM_REJECTED' });
    next = { status: 201, body: answers.link };
    expect(await link(2)).toBeUndefined();
    next = { status: 403 };
    expect(await link(3)).toMatchObject({ code: 'UPSTREAM_REJECTED' });
  });
});
