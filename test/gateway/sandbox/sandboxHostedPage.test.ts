import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { sandboxClient } from '../../support/sandboxClient.js';

let sandbox: Sandbox;
const { call, createLink } = sandboxClient(() => sandbox);

beforeEach(async () => {
  sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret-not-real', jobDurationMs: 0 });
});
afterEach(() => sandbox.stop());

describe('The hosted page', () => {
  const textOf = (page: string, id: string) => new RegExp(`id="${id}"[^>]*>([^<]*)<`).exec(page)?.[1] ?? '';
  /** A link, its page by now, and a button of a page. */
  const follow = async (settings = {}) => {
    const path = `/c/${(await createLink({ settings })).json.id}`;
    const page = async () => (await call(path)).text;
    const press = (words: string, from: string) => {
      const step = new RegExp(`<button name="step" value="([^"]+)">${words}<`).exec(from)?.[1] ?? 'no such button';
      return call(path, { method: 'POST', body: `${new URLSearchParams({ step })}` });
    };
    return { path, page, press };
  };

  it('takes a step once: a form that was sent twice, or from an old tab, changes nothing', async () => {
    const { page, press } = await follow();
    const first = await page();
    await press('Give consent', first);
    await press('Sign and submit', await page());
    await press('Authority accepts', await page());
    expect((await press('Give consent', first)).status).toBe(303);
    const authorized = await page();
    expect(textOf(authorized, 'taxpayer-status')).toBe('AUTHORIZED');
    await press('Start a data refresh', authorized);
    const jobId = textOf(await page(), 'job-id');
    await press('Start a data refresh', authorized);
    expect(textOf(await page(), 'job-id')).toBe(jobId);
    await press('Start a data refresh', await page());
    expect(textOf(await page(), 'job-id')).not.toBe(jobId);
  });

  it('lets the authority decline, and then offers no form', async () => {
    const { page, press } = await follow();
    for (const words of ['Give consent', 'Sign and submit', 'Authority declines']) await press(words, await page());
    expect(textOf(await page(), 'taxpayer-status')).toBe('REJECTED');
    expect(await page()).not.toContain('<form');
  });

  it('shows the prefilled name as text, and nothing else that was prefilled', async () => {
    const personalInfo = { lastName: '<script>"&\'', ssn: '900-00-1234' };
    const { path } = await follow({ prefillData: { personalInfo } });
    const page = await call(`${path}/`);
    expect(page.text).toContain('&#60;script&#62;&#34;&#38;&#39;');
    expect(page.text).not.toMatch(/<script|1234/);
    expect(page.headers).toMatchObject({
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
  });

  it('explains at the address of the service what that is, and counts it as off the contract', async () => {
    expect(await call('/')).toMatchObject({
      status: 200,
      text: expect.stringContaining('It stands in for the service'),
    });
    expect(sandbox.control.counters()).toMatchObject({ unknown: 1, hostedPage: 0 });
    expect((await call('/', { method: 'POST' })).status).toBe(404);
  });

  it.each(['/c/no-such-link', '/c/__proto__'])('answers 404 to %s', async (path) => {
    expect((await call(path)).status).toBe(404);
  });
});
