import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Sandbox, startSandbox } from '../../src/sandbox/Sandbox.js';
import { sandboxClient } from '../support/sandboxClient.js';

const credentials = { clientId: 'test-client', clientSecret: 'test-secret-not-real' };

let sandbox: Sandbox;
const { call, createLink, readToken, readJob } = sandboxClient(() => sandbox);

beforeEach(async () => {
  sandbox = await startSandbox(credentials);
});
afterEach(() => sandbox.stop());

describe('The hosted page', () => {
  const submit = (page: string, fields: Record<string, string>) => {
    const action = /<form method="post" action="([^"]+)">/.exec(page)?.[1] ?? '/no-form';
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    return call(action, { method: 'POST', headers, body: new URLSearchParams(fields).toString() });
  };
  const textOf = (page: string, id: string) => new RegExp(`id="${id}"[^>]*>([^<]*)<`).exec(page)?.[1];

  it('leads a taxpayer from the link to a refresh job by plain forms', async () => {
    const { json: link } = await createLink({ settings: { prefillData: { personalInfo: { firstName: 'Fay' } } } });
    const page = async () => (await call(`/c/${link.id}`)).text;
    const taxpayerId = textOf(await page(), 'taxpayer-id') ?? '';
    const status = async () => (await readToken(taxpayerId)).json.status;
    expect(await status()).toBe('CREATED');

    const redirect = await submit(await page(), {});
    expect(redirect).toMatchObject({ status: 303, headers: { location: `/c/${link.id}` } });
    expect(await status()).toBe('CONSENT_RECEIVED');

    const unsigned = await submit(await page(), { signature: 'Fay' });
    expect(unsigned.status).toBe(422);
    expect(unsigned.text).toContain('role="alert"');
    await submit(await page(), { signature: 'Fay', agreed: 'yes' });
    expect(await status()).toBe('TAX_AUTHORIZATION_SUBMITTED');

    await submit(await page(), { decision: 'accept' });
    expect(await status()).toBe('AUTHORIZED');

    await submit(await page(), {});
    const last = await page();
    const jobId = textOf(last, 'job-id') ?? '';
    expect(textOf(last, 'graphql-query')).toContain(`refreshJob(taxpayerId: &quot;${taxpayerId}&quot;`);
    expect((await readJob({ taxpayerId, jobId })).json).toMatchObject({ jobId, taxpayerId, status: 'processing' });
  });

  it('lets the authority decline, and then offers no form', async () => {
    const { json: link } = await createLink();
    const page = async () => (await call(`/c/${link.id}`)).text;
    await submit(await page(), {});
    await submit(await page(), { signature: 'Fay', agreed: 'yes' });
    await submit(await page(), { decision: 'decline' });
    expect(textOf(await page(), 'taxpayer-status')).toBe('REJECTED');
    expect(await page()).not.toContain('<form');
  });

  it('ignores a form that was sent twice', async () => {
    const { json: link } = await createLink();
    const { text: first } = await call(`/c/${link.id}`);
    await submit(first, {});
    expect((await submit(first, {})).status).toBe(303);
    expect(textOf((await call(`/c/${link.id}`)).text, 'taxpayer-status')).toBe('CONSENT_RECEIVED');
  });

  it('escapes what was prefilled and masks all but the end of the SSN', async () => {
    const { json: link } = await createLink({
      settings: { prefillData: { personalInfo: { lastName: '<script>"&\'', ssn: '900-00-1234' } } },
    });
    const page = await call(`/c/${link.id}`);
    expect(page.text).toContain('&lt;script&gt;&quot;&amp;&#39;');
    expect(page.text).not.toContain('<script');
    expect(page.text).toContain('•••••1234');
    expect(page.text).not.toContain('900-00');
    expect(page.headers).toMatchObject({
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
  });

  it.each(['/c/no-such-link', '/c/__proto__'])('answers 404 to %s', async (path) => {
    expect((await call(path)).status).toBe(404);
  });
});
