import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Fault } from '../../support/fault.js';
import { faults } from '../../support/faults.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { sandboxClient } from '../../support/sandboxClient.js';

const authorized = '44444444-4444-4444-8444-444444444444';

let sandbox: Sandbox;
const { readToken, readJob } = sandboxClient(() => sandbox);

beforeEach(async () => {
  sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret-not-real' });
});
afterEach(() => sandbox.stop());

const once = (fault: Fault) => sandbox.control.arm({ endpoint: 'any', fault, times: 1 });

describe('A fault of the sandbox in tests', () => {
  it('happens as often as armed, for the taxpayer it names, and then no more', async () => {
    const { control, demo } = sandbox;
    const fault: Fault = { status: 429, headers: { 'Retry-After': '7' }, body: '{}' };
    control.arm({ endpoint: 'taxpayerToken', taxpayerId: authorized, fault, times: 2 });
    expect((await readToken(demo.taxpayerIds.created)).status).toBe(200);
    const refused = await readToken(authorized);
    expect(refused).toMatchObject({ status: 429, text: '{}', headers: { 'retry-after': '7' } });
    expect((await readToken(authorized)).status).toBe(429);
    expect((await readToken(authorized)).status).toBe(200);
  });

  it('stands until disarmed when no times are given, and leaves an error as it is', async () => {
    const id = sandbox.control.arm({ endpoint: 'taxpayerToken', fault: faults.wrongType });
    expect((await readToken(authorized)).json.access_token).toBe(42);
    expect((await readToken('nobody')).status).toBe(404);
    expect(sandbox.control.disarm(id)).toBe(true);
    expect((await readToken(authorized)).json.access_token).not.toBe(42);
  });

  it('breaks the connection', async () => {
    for (const fault of [{ cut: 'before' }, { cut: 'half' }] as const) {
      once(fault);
      await expect(readToken(authorized)).rejects.toMatchObject({ code: 'ECONNRESET' });
    }
    once({ cut: 'after' });
    expect((await readToken(authorized)).json.taxpayer_id).toBe(authorized);
  });

  it('decides on arrival what is answered when released', async () => {
    const { control } = sandbox;
    once({ gate: 'g' });
    const early = readToken(authorized);
    await control.whenCalled('taxpayerToken', 1);
    control.updateTaxpayer(authorized, { name: 'Changed' });
    expect(control.release('g')).toBe(1);
    expect((await early).json.name).toBe('Arthur Authorized (not real)');
  });

  it('spoils what its name says: the answer is right otherwise', async () => {
    const { completed } = sandbox.demo.jobs;
    once(faults.memberMissing);
    expect((await readJob(completed)).json).toEqual({ ...completed, name: 'Demo refresh 1 (not real)' });
    once(faults.otherSuccessStatus);
    expect(await readToken(authorized)).toMatchObject({ status: 201, json: { taxpayer_id: authorized } });
    once(faults.notUtf8);
    expect((await readToken(authorized)).bytes.includes(Buffer.from([0xff, 0xfe]))).toBe(true);
    for (const fault of [faults.deepMetadata, faults.deepBody]) {
      once(fault);
      const { text } = await readToken(authorized);
      expect(text.split('{"d":').length).toBe(100_001);
      expect(() => JSON.parse(text)).not.toThrow();
    }
  });

  it('gives valid JSON that is too long, with its length, in chunks, or as gzip', async () => {
    once(faults.huge);
    const honest = await readToken(authorized);
    expect(honest).toMatchObject({ headers: { 'content-length': '5000000' }, json: { taxpayer_id: authorized } });
    once(faults.hugeInChunks);
    const chunked = await readToken(authorized);
    expect(chunked.bytes.length).toBe(50_000_000);
    expect(chunked.headers['content-length']).toBeUndefined();
    expect(chunked.json).toEqual(honest.json);
    once(faults.gzipBomb);
    const { bytes } = await readToken(authorized);
    expect(bytes.length).toBeLessThan(1_000_000);
    const last = bytes.lastIndexOf(Buffer.from([0x1f, 0x8b, 0x08]));
    expect(JSON.parse(gunzipSync(bytes.subarray(last)).toString())).toEqual(honest.json);
  });
});
