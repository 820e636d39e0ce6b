import { Agent } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { sandboxClient } from '../../support/sandboxClient.js';

const authorized = '44444444-4444-4444-8444-444444444444';
const tokenPath = `/auth/tax-payer/${authorized}/token`;

let sandbox: Sandbox;
const { call, asClient, createLink, readToken, readJob } = sandboxClient(() => sandbox);

beforeEach(async () => {
  sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret-not-real' });
});
afterEach(() => sandbox.stop());

describe('The control of the sandbox in tests', () => {
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
    expect(odd).toMatchObject({ method: 'GET', path: '/auth/tax-payer/a%2Fb/token' });
    expect(odd?.headers).toContainEqual(['X-Odd-CASE', 'kept']);
    expect(control.requests('createClientLink')[0]?.body).toBe('{"metadata":{}}');
    control.resetCounters();
    expect(control.counters()).toMatchObject({ taxpayerToken: 0 });
    expect(control.requests()).toEqual([]);
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

  it('refuses connections during an outage and comes back on the same port with what it knew', async () => {
    const { control, url } = sandbox;
    const { id } = control.addTaxpayer();
    const agent = new Agent({ keepAlive: true });
    control.arm({ endpoint: 'any', fault: { gate: 'never' }, times: 1 });
    const cut = call(tokenPath, { headers: asClient(), agent });
    await control.whenCalled('taxpayerToken', 1);
    await Promise.all([control.outage(true), expect(cut).rejects.toMatchObject({ code: 'ECONNRESET' })]);
    await expect(readToken(id)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await control.outage(false);
    expect(sandbox.url).toBe(url);
    expect((await readToken(id)).status).toBe(200);
    agent.destroy();
  });
});
