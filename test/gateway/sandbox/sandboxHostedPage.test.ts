import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { sandboxClient } from '../../support/sandboxClient.js';

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
    const hidden = [...page.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)];
    const all = { ...Object.fromEntries(hidden.map(([, name, value]) => [name, value])), ...fields };
    return call(action, { method: 'POST', headers, body: new URLSearchParams(all).toString() });
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

  /** A link whose taxpayer is authorized, and its page by now. */
  const authorized = async () => {
    const { json: link } = await createLink();
    const page = async () => (await call(`/c/${link.id}`)).text;
    await submit(await page(), {});
    await submit(await page(), { signature: 'Fay', agreed: 'yes' });
    await submit(await page(), { decision: 'accept' });
    return page;
  };

  it('starts one data refresh for a form that was sent twice, and another from the page as it is now', async () => {
    const page = await authorized();
    const before = await page();
    await submit(before, {});
    const first = textOf(await page(), 'job-id');
    expect((await submit(before, {})).status).toBe(303);
    expect(textOf(await page(), 'job-id')).toBe(first);
    await submit(await page(), {});
    expect(textOf(await page(), 'job-id')).not.toBe(first);
  });

  it('a completed data refresh completes the taxpayer, who then has nothing left to do', async () => {
    const page = await authorized();
    await submit(await page(), {});
    const taxpayerId = textOf(await page(), 'taxpayer-id') ?? '';
    const jobId = textOf(await page(), 'job-id') ?? '';
    sandbox.control.updateJob(taxpayerId, jobId, { durationMs: 0 });
    expect((await readJob({ taxpayerId, jobId })).json.status).toBe('processing');
    expect((await readToken(taxpayerId)).json.status).toBe('AUTHORIZED');
    expect((await readJob({ taxpayerId, jobId })).json.status).toBe('completed');
    expect((await readToken(taxpayerId)).json.status).toBe('COMPLETED');
    expect(await page()).not.toContain('<form');
  });

  it('shows what was prefilled in groups, without blanks, and the items of the transcripts', async () => {
    const { json: link } = await createLink({
      settings: {
        transcripts: { '1095-A': ['2022', '2023'], ACTR: [] },
        prefillData: {
          personalInfo: { firstName: 'Fay', lastName: '' },
          businessInfo: { name: 'Acme', type: 'LLC', title: 'CEO' },
          address: { street: ' ' },
        },
      },
    });
    const { text } = await call(`/c/${link.id}`);
    const prefilled = text.slice(text.indexOf('</dl>'), text.indexOf('<h2>Steps'));
    expect([...prefilled.matchAll(/<(h2|dt|dd)>([^<]*)/g)].map(([, , words]) => words)).toEqual([
      ...['Your personal details', 'First name', 'Fay'],
      ...['Your business', 'Name', 'Acme', 'Type', 'LLC', 'Title', 'CEO'],
      ...['Transcripts asked for', '1095-A', '2022, 2023', 'ACTR', 'no items'],
    ]);
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

  it('is there with a slash at the end as well, and at the address of each form, which takes nothing by GET', async () => {
    const { json: link } = await createLink();
    for (const path of [`/c/${link.id}/`, `/c/${link.id}/consent`, `/c/${link.id}/sign`]) {
      const page = await call(path);
      expect([path, page.status, textOf(page.text, 'taxpayer-status')]).toEqual([path, 200, 'CREATED']);
    }
    expect((await call(`/c/${link.id}/no-such-step`)).headers['content-type']).toContain('text/html');
    expect(sandbox.control.counters()).toMatchObject({ hostedPage: 4, unknown: 0 });
  });

  it('explains at the address of the service what that is, and counts it as off the contract', async () => {
    const page = await call('/');
    expect(page).toMatchObject({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } });
    expect(page.text).toContain('It stands in for the service');
    expect(sandbox.control.counters().unknown).toBe(1);
    expect((await call('/', { method: 'POST' })).status).toBe(404);
  });

  it.each(['/c/no-such-link', '/c/__proto__'])('answers 404 to %s', async (path) => {
    expect((await call(path)).status).toBe(404);
  });
});
