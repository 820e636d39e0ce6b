import { upstreamOnlyText } from '../../support/fault.js';
import type { Texts } from '../../support/gateway.js';
import { rawHttp } from '../../support/rawHttp.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';

const credentials = { clientId: 'test-client', clientSecret: 'test-secret-not-real' };
const authorized = '44444444-4444-4444-8444-444444444444';
const tokenPath = `/auth/tax-payer/${authorized}/token`;

let sandbox: Sandbox;

interface Sent {
  readonly method?: string;
  readonly headers?: Texts;
  readonly body?: string;
}

/** Sends a request as it is: nothing is normalised. */
async function call(path: string, { method = 'GET', headers = {}, body = '' }: Sent = {}) {
  const connection = rawHttp(sandbox.url);
  const lines = Object.entries({ host: 'x', ...headers, ...(body && { 'content-length': body.length }) });
  connection.write(`${method} ${path} HTTP/1.1`, ...lines.map(([name, value]) => `${name}: ${value}`), '', body);
  const answer = await connection.answer();
  connection.end();
  if (answer === undefined) throw new Error('The sandbox closed the connection');
  return { ...answer, json: () => JSON.parse(answer.body) as Record<string, string> };
}

const asClient = { authorization: `Bearer ${Buffer.from('test-client:test-secret-not-real').toString('base64')}` };
const createLink = (input: object) => {
  const headers = { ...asClient, 'content-type': 'application/json' };
  return call('/client-links', { method: 'POST', headers, body: JSON.stringify(input) });
};

beforeEach(async () => {
  sandbox = await startSandbox(credentials);
});

describe('The sandbox serves the interface of the service:', () => {
  const jobPath = `/tax-payer/${authorized}/refresh/cccccccc-cccc-4ccc-8ccc-cccccccccccc`;
  it.each<[string, number, string, Sent]>([
    ['wrong client credentials', 401, tokenPath, { headers: { authorization: 'Bearer bm86bm8=' } }],
    ['client credentials in place of the access token', 401, jobPath, { headers: asClient }],
    ['a missing access token', 401, jobPath, {}],
    ['an unknown taxpayer', 404, '/auth/tax-payer/nobody/token', { headers: asClient }],
    [
      'a job of another taxpayer',
      404,
      '/tax-payer/66666666-6666-4666-8666-666666666666/refresh/ffffffff-ffff-4fff-8fff-ffffffffffff',
      { headers: { authorization: 'Bearer sandbox-token-not-real-6' } },
    ],
    ['another method', 404, tokenPath, { method: 'DELETE' }],
    ['an encoded slash', 404, `/auth%2Ftax-payer/${authorized}/token`, { headers: asClient }],
    ['an id that is no UTF-8', 404, '/auth/tax-payer/%FF/token', {}],
  ])('refuses %s with %i and the text that must never reach a caller', async (_, status, path, sent) => {
    const answer = await call(path, sent);
    expect(answer.status).toBe(status);
    expect(answer.body).toContain(upstreamOnlyText);
    expect(answer.headers.get('x-sandbox-detail')).toBe(upstreamOnlyText);
  });
});

describe('The hosted page', () => {
  const textOf = (page: string, id: string) => new RegExp(`id="${id}"[^>]*>([^<]*)<`).exec(page)?.[1] ?? '';
  /** Creates a link. `page` reads its page as it is now, `press` presses a button of a page read before. */
  const follow = async (settings = {}) => {
    const path = `/c/${(await createLink({ settings })).json()['id']}`;
    const page = async () => (await call(path)).body;
    const press = (words: string, from: string) => {
      const step = new RegExp(`<button name="step" value="([^"]+)">${words}<`).exec(from)?.[1] ?? 'no such button';
      return call(path, { method: 'POST', body: `${new URLSearchParams({ step })}` });
    };
    return { path, page, press };
  };

  it('lets the authority decline, and then offers no form', async () => {
    const { page, press } = await follow();
    for (const words of ['Give consent', 'Sign and submit', 'Authority declines']) await press(words, await page());
    expect(textOf(await page(), 'taxpayer-status')).toBe('REJECTED');
    expect(await page()).not.toContain('<button');
  });

  it('takes no step that it does not offer at that moment', async () => {
    const { path, page } = await follow();
    for (const step of ['COMPLETED', 'refresh', 'toString']) await call(path, { method: 'POST', body: `step=${step}` });
    expect([textOf(await page(), 'taxpayer-status'), textOf(await page(), 'job-id')]).toEqual(['CREATED', 'none']);
  });

  it('shows the prefilled name as text, and nothing else that was prefilled', async () => {
    const personalInfo = { lastName: '<script>"&\'', ssn: '900-00-1234' };
    const { path } = await follow({ prefillData: { personalInfo } });
    const page = await call(`${path}/`);
    expect(page.body).toContain('&#60;script&#62;&#34;&#38;&#39;');
    expect(page.body).not.toMatch(/<script|1234/);
    expect(page.body).toContain('<link rel="icon" href="data:,">'); // the policy refuses /favicon.ico
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'content-security-policy': expect.stringContaining("default-src 'none'; img-src data:;"),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
  });

  it.each(['/c/no-such-link', '/c/__proto__'])('answers 404 to %s', async (path) => {
    const { status, body } = await call(path);
    expect([status, body]).toEqual([404, expect.stringMatching(/<html lang="en">.*There is no such link/s)]);
  });
});
