import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { upstreamOnlyText } from '../../src/sandbox/Answer.js';
import type { Fault } from '../support/fault.js';
import { type Sandbox, startSandbox } from '../support/sandbox.js';
import { type Received, sandboxClient } from '../support/sandboxClient.js';

const credentials = { clientId: 'test-client', clientSecret: 'test-secret-not-real' };
const authorized = '44444444-4444-4444-8444-444444444444';
const tokenPath = `/auth/tax-payer/${authorized}/token`;

let sandbox: Sandbox;
const { call, asClient, readToken, readJob } = sandboxClient(() => sandbox);

beforeEach(async () => {
  sandbox = await startSandbox(credentials);
});
afterEach(() => sandbox.stop());

describe('A fault', () => {
  const once = (fault: Fault) => sandbox.control.arm({ endpoint: 'any', fault, times: 1 });

  it('happens as often as armed, for the taxpayer it names, and then no more', async () => {
    const { control, demo } = sandbox;
    const fault: Fault = { kind: 'answer-with-status', status: 429, headers: { 'Retry-After': '7' }, body: '{}' };
    control.arm({ endpoint: 'taxpayerToken', taxpayerId: authorized, fault, times: 2 });
    expect((await readToken(demo.taxpayerIds.created)).status).toBe(200);
    const refused = await readToken(authorized);
    expect(refused).toMatchObject({ status: 429, text: '{}', headers: { 'retry-after': '7' } });
    expect(control.armedFaults()).toMatchObject([{ happened: 1 }]);
    expect((await readToken(authorized)).status).toBe(429);
    expect((await readToken(authorized)).status).toBe(200);
  });

  it('stands until disarmed when no times are given', async () => {
    const id = sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { kind: 'refuse-authorization' } });
    expect((await readToken(authorized)).status).toBe(401);
    expect((await readToken(authorized)).status).toBe(401);
    expect(sandbox.control.disarm(id)).toBe(true);
    expect((await readToken(authorized)).status).toBe(200);
  });

  it.each<[Fault, Partial<Received> | Record<string, unknown>]>([
    [
      { kind: 'redirect', status: 307, location: '/x' },
      { status: 307, headers: { location: '/x' } },
    ],
    [{ kind: 'answer-with-html' }, { status: 200, headers: { 'content-type': 'text/html' } }],
    [{ kind: 'answer-with-text-that-is-not-json' }, { status: 200, text: `{"text":"${upstreamOnlyText}` }],
    [{ kind: 'answer-with-null' }, { status: 200, text: 'null' }],
    [{ kind: 'answer-with-empty-body' }, { status: 200, text: '' }],
    [
      { kind: 'answer-late', afterMs: 5 },
      { status: 200, json: { taxpayer_id: authorized } },
    ],
    [
      { kind: 'drip-body', everyMs: 0, bytes: 50 },
      { status: 200, json: { taxpayer_id: authorized } },
    ],
    [{ kind: 'close-after-answer' }, { status: 200, json: { taxpayer_id: authorized } }],
    [{ kind: 'give-wrong-type' }, { json: { access_token: 42 } }],
    [{ kind: 'give-wrong-type', field: 'name', value: null }, { json: { name: null } }],
    [{ kind: 'give-unknown-enum-value' }, { json: { status: 'VALUE_FROM_THE_FUTURE' } }],
    [{ kind: 'answer-for-other-taxpayer' }, { json: { taxpayer_id: '11111111-1111-4111-8111-111111111111' } }],
    [{ kind: 'answer-with-wrong-content-type' }, { headers: { 'content-type': 'text/plain' } }],
    [{ kind: 'answer-with-wrong-success-status' }, { status: 201, json: { taxpayer_id: authorized } }],
    [{ kind: 'answer-with-broken-gzip' }, { text: 'no gzip', headers: { 'content-encoding': 'gzip' } }],
  ])('%j is seen by a plain client', async (fault, seen) => {
    once(fault);
    expect(await readToken(authorized)).toMatchObject(seen);
  });

  it('omit-field leaves the most telling field out', async () => {
    once({ kind: 'omit-field' });
    expect((await readToken(authorized)).json).not.toHaveProperty('access_token');
  });

  it('answer-for-other-job and -taxpayer spoil a job record, too', async () => {
    once({ kind: 'answer-for-other-job', jobId: 'j' });
    expect((await readJob(sandbox.demo.jobs.completed)).json).toMatchObject({ jobId: 'j' });
    once({ kind: 'answer-for-other-taxpayer' });
    expect((await readJob(sandbox.demo.jobs.completed)).json.taxpayerId).not.toBe(authorized);
  });

  it('give-invalid-utf8 puts bytes into a text that are not valid UTF-8', async () => {
    once({ kind: 'give-invalid-utf8' });
    const { bytes } = await readToken(authorized);
    expect(bytes.includes(Buffer.from([0xff, 0xfe]))).toBe(true);
  });

  it('answer-with-huge-body gives valid JSON of the size wanted, with or without its length', async () => {
    once({ kind: 'answer-with-huge-body', bytes: 3_000_000 });
    const honest = await readToken(authorized);
    expect(honest.bytes.length).toBe(3_000_000);
    expect(honest.headers['content-length']).toBe('3000000');
    once({ kind: 'answer-with-huge-body', bytes: 3_000_000, chunked: true });
    const chunked = await readToken(authorized);
    expect(chunked.json).toEqual(honest.json);
    expect(chunked.headers['content-length']).toBeUndefined();
  });

  it('answer-with-gzip-bomb expands a thousandfold to valid JSON', async () => {
    once({ kind: 'answer-with-gzip-bomb', bytes: 8_000_000 });
    const { bytes } = await readToken(authorized);
    const expanded = gunzipSync(bytes);
    expect(expanded.length).toBeGreaterThan(8_000_000);
    expect(bytes.length).toBeLessThan(20_000);
    expect(JSON.parse(expanded.toString())).toMatchObject({ taxpayer_id: authorized });
  });

  it.each(['metadata', 'body'] as const)('nest-deeply nests the %s', async (where) => {
    once({ kind: 'nest-deeply', levels: 50_000, where });
    const { text } = await readToken(authorized);
    expect(text.split('{"deeper":').length).toBe(50_001);
    expect(() => JSON.parse(text)).not.toThrow();
  });

  it.each<Fault>([{ kind: 'reset-before-effect' }, { kind: 'reset-after-effect' }, { kind: 'truncate-body' }])(
    '%j breaks the connection',
    async (fault) => {
      once(fault);
      await expect(readToken(authorized)).rejects.toMatchObject({ code: 'ECONNRESET' });
      expect((await readToken(authorized)).status).toBe(200);
    },
  );

  it('never-answer keeps the client waiting', async () => {
    once({ kind: 'never-answer' });
    await expect(call(tokenPath, { headers: asClient(), timeoutMs: 30 })).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('carries the request out or not, as its name says', async () => {
    const { jobId } = sandbox.control.addJob({ taxpayerId: authorized, durationMs: 0 });
    once({ kind: 'reset-before-effect' });
    await expect(readJob({ taxpayerId: authorized, jobId })).rejects.toThrow();
    once({ kind: 'answer-with-status', status: 500 });
    expect((await readJob({ taxpayerId: authorized, jobId })).status).toBe(500);
    expect((await readJob({ taxpayerId: authorized, jobId })).json.status).toBe('processing');
    sandbox.control.restartJob(authorized, jobId);
    once({ kind: 'reset-after-effect' });
    await expect(readJob({ taxpayerId: authorized, jobId })).rejects.toThrow();
    expect((await readJob({ taxpayerId: authorized, jobId })).json.status).toBe('completed');
  });

  it('hold-until-released decides on arrival and answers when released', async () => {
    const { control } = sandbox;
    once({ kind: 'hold-until-released', gate: 'g' });
    const early = readToken(authorized);
    await control.whenCalled('taxpayerToken', 1);
    control.updateTaxpayer(authorized, { name: 'Changed' });
    expect(control.release('g')).toBe(1);
    expect((await early).json.name).toBe('Arthur Authorized (not real)');
    expect((await readToken(authorized)).json.name).toBe('Changed');
  });

  it('leaves an error answer as it is', async () => {
    once({ kind: 'give-wrong-type' });
    expect((await readToken('nobody')).status).toBe(404);
  });
});
