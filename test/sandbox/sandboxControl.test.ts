import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/Sandbox.js';
import { sandboxClient } from '../support/sandboxClient.js';

const credentials = { clientId: 'test-client', clientSecret: 'test-secret-not-real' };
const authorized = '44444444-4444-4444-8444-444444444444';
const tokenPath = `/auth/tax-payer/${authorized}/token`;

const clock = 1_700_000_000_000;
let sandbox: Sandbox;
const { call, asClient, createLink, readToken, readJob } = sandboxClient(() => sandbox);

async function restart(options: Partial<SandboxOptions> = {}): Promise<void> {
  await sandbox?.stop();
  sandbox = await startSandbox({ ...credentials, now: () => clock, ...options });
}

beforeEach(() => restart());
afterEach(() => sandbox.stop());

describe('The control', () => {
  it('counts calls per endpoint, taxpayer and job, and keeps what was received untouched', async () => {
    await readToken(authorized);
    await readJob({ taxpayerId: authorized, jobId: 'x' });
    await call('/auth/tax-payer/a%2Fb/token', { headers: { 'X-Odd-CASE': 'kept' } });
    await createLink('{"metadata":{}}');
    const { control } = sandbox;
    expect(control.counters()).toMatchObject({ taxpayerToken: 2, refreshJob: 1, createClientLink: 1, unknown: 0 });
    expect(control.tokenCalls(authorized)).toBe(1);
    expect(control.tokenCalls('a/b')).toBe(1);
    expect(control.jobCalls(authorized, 'x')).toBe(1);
    const [, odd] = control.requests('taxpayerToken');
    expect(odd).toMatchObject({ method: 'GET', path: '/auth/tax-payer/a%2Fb/token', receivedAt: clock });
    expect(odd?.headers).toContainEqual(['X-Odd-CASE', 'kept']);
    expect(control.requests('createClientLink')[0]?.body).toBe('{"metadata":{}}');
    control.resetCounters();
    expect(control.counters()).toMatchObject({ taxpayerToken: 0, taxpayerTokenByTaxpayer: {} });
    expect(control.requests()).toEqual([]);
  });

  it('keeps the latest requests only', async () => {
    await restart({ logCapacity: 2 });
    for (const path of ['/1', '/2', '/3', '/4', '/5']) await call(path);
    expect(sandbox.control.requests().map(({ path }) => path)).toEqual(['/4', '/5']);
    expect(sandbox.control.counters().unknown).toBe(5);
  });

  it('resolves whenCalled once the endpoint has been called that often', async () => {
    const twice = sandbox.control.whenCalled('taxpayerToken', 2);
    await Promise.all([readToken(authorized), readToken(authorized), twice]);
  });

  it('refuses the old token and the old client secret after a rotation', async () => {
    const { control, demo } = sandbox;
    const { accessToken: old } = control.taxpayer(authorized) ?? {};
    control.rotateAllTokens();
    const path = `/tax-payer/${authorized}/refresh/${demo.jobs.completed.jobId}`;
    expect((await call(path, { headers: { authorization: `Bearer ${old}` } })).status).toBe(401);
    expect((await readJob(demo.jobs.completed)).status).toBe(200);
    control.setClientSecret('another');
    expect((await readToken(authorized)).status).toBe(401);
  });

  it('adds and changes taxpayers and jobs', async () => {
    const { control } = sandbox;
    const ids = control.addTaxpayers(100, { status: 'AUTHORIZED' });
    expect(new Set(ids).size).toBe(100);
    const [id = ''] = ids;
    control.updateTaxpayer(id, { status: 'ODD', providerId: 'p', name: 'N', metadata: { a: [1] } });
    expect((await readToken(id)).json).toMatchObject({
      status: 'ODD',
      provider_id: 'p',
      name: 'N',
      metadata: { a: [1] },
    });
    const { jobId } = control.addJob({ taxpayerId: id, endsAs: 'failed', durationMs: 0 });
    expect((await readJob({ taxpayerId: id, jobId })).json.status).toBe('processing');
    expect((await readJob({ taxpayerId: id, jobId })).json.status).toBe('failed');
    control.updateJob(id, jobId, { status: 'odd' });
    expect((await readJob({ taxpayerId: id, jobId })).json.status).toBe('odd');
  });

  it('refuses connections during an outage and comes back on the same port', async () => {
    const { url } = sandbox;
    const agent = new Agent({ keepAlive: true });
    sandbox.control.arm({ endpoint: 'any', fault: { kind: 'never-answer' }, times: 1 });
    const cut = call(tokenPath, { headers: asClient(), agent });
    await sandbox.control.whenCalled('taxpayerToken', 1);
    await Promise.all([sandbox.control.outage(true), expect(cut).rejects.toMatchObject({ code: 'ECONNRESET' })]);
    await expect(readToken(authorized)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await sandbox.control.outage(false);
    expect(sandbox.url).toBe(url);
    expect((await readToken(authorized)).status).toBe(200);
    agent.destroy();
  });

  it('serves the same surface over HTTP, on a port of its own even during an outage', async () => {
    await restart({ httpControl: true });
    const ask = async (base: string | undefined, name: string, body?: unknown) => {
      const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
      const response = await fetch(`${base}/__sandbox/${name}`, sent);
      return { status: response.status, json: await response.json() };
    };
    const { url, controlUrl } = sandbox;
    expect(await ask(url, 'demo')).toEqual({ status: 200, json: sandbox.demo });
    const { json: ids } = await ask(url, 'add-taxpayers', { count: 3 });
    expect(ids).toHaveLength(3);
    const fault = { kind: 'answer-with-status', status: 503 };
    expect(await ask(url, 'arm', { endpoint: 'taxpayerToken', fault, times: 1 })).toMatchObject({ json: { id: 1 } });
    expect((await readToken(authorized)).status).toBe(503);
    expect(await ask(url, 'counters')).toMatchObject({ json: { taxpayerToken: 1, unknown: 0 } });
    expect((await ask(url, 'requests?endpoint=taxpayerToken')).json).toHaveLength(1);
    expect((await ask(url, 'arm', { endpoint: 'taxpayerToken', fault: { kind: 'sulk' } })).status).toBe(400);
    expect((await ask(url, 'rotate-token', { id: 'nobody' })).status).toBe(404);
    expect((await ask(url, 'toString', {})).status).toBe(404);
    await ask(controlUrl, 'outage', { isOut: true });
    await expect(readToken(authorized)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await ask(controlUrl, 'outage', { isOut: false });
    expect((await readToken(authorized)).status).toBe(200);
  });

  it.each<[string, number, string, unknown]>([
    [
      'an unknown member of a fault',
      400,
      'arm',
      { endpoint: 'any', fault: { kind: 'redirect', status: 302, location: '/', to: '/' } },
    ],
    ['an unknown query parameter', 400, 'requests?endpoints=taxpayerToken', undefined],
    ['a query parameter where none belongs', 400, 'counters?endpoint=taxpayerToken', undefined],
    ['a member where none belongs', 400, 'reset-counters', { endpoint: 'taxpayerToken' }],
    ['no id', 400, 'taxpayer', undefined],
    ['an id that nobody has', 404, 'taxpayer?id=nobody', undefined],
    ['a latency that no timer has', 400, 'set-latency', { latencyMs: 2 ** 31 }],
    ['a delay that no timer has', 400, 'arm', { endpoint: 'any', fault: { kind: 'answer-late', afterMs: 2 ** 31 } }],
  ])('refuses %s with %i over HTTP', async (_, status, name, body) => {
    await restart({ httpControl: true });
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    expect((await fetch(`${sandbox.url}/__sandbox/${name}`, sent)).status).toBe(status);
  });

  it('listens on the loopback interface only', () => {
    expect(new URL(sandbox.url).hostname).toBe('127.0.0.1');
  });
});

describe('The sandbox as a process of its own', () => {
  // The build's entry: `npm test` builds before the tests run.
  const entry = fileURLToPath(new URL('../../dist/sandbox/main.js', import.meta.url));

  it('prints its address as one line of JSON when ready, and ends on SIGTERM though connections are open', async () => {
    const child = spawn(process.execPath, [entry, '--client-id', 'someone', '--client-secret', 's', '--http-control']);
    const ended = once(child, 'exit');
    const [line] = await once(createInterface(child.stdout), 'line');
    const { url, controlUrl } = JSON.parse(line);
    const authorization = `Bearer ${Buffer.from('someone:s').toString('base64')}`;
    expect((await fetch(`${url}${tokenPath}`, { headers: { authorization } })).status).toBe(200);
    expect(await (await fetch(`${controlUrl}/__sandbox/counters`)).json()).toMatchObject({ taxpayerToken: 1 });
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });

  it.each(['port', 'taxpayers'])('names --%s that it cannot use in one line and ends with 1', async (flag) => {
    const child = spawn(process.execPath, [entry, `--${flag}`, 'abc']);
    const ended = once(child, 'exit');
    const lines: string[] = [];
    for await (const line of createInterface(child.stderr)) lines.push(line);
    expect(lines).toEqual([`--${flag} must be a whole number, found "abc"`]);
    expect(await ended).toEqual([1, null]);
  });
});
