import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../../support/browser.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { until } from '../../support/until.js';

let browser: Browser;
let gateway: TestGateway;
let page: Page;
beforeAll(async () => {
  browser = await launchBrowser();
  gateway = await startTestGateway({}, { jobDurationMs: 500 });
}, 60_000);
beforeEach(async () => {
  page = await browser.newPage();
});
afterEach(() => page.close());

describe('In a browser without internet', () => {
  it('/graphql leads to an explorer with a tab for each step and a schema without what only routers use', async () => {
    const elsewhere: string[] = [];
    page.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== gateway.origin) {
        elsewhere.push(request.url());
      }
    });
    const introspected = page.waitForResponse(
      (response) => response.request().postData()?.includes('IntrospectionQuery') ?? false,
    );
    await page.goto(`${gateway.origin}/graphql`);
    expect(page.url()).toBe(`${gateway.origin}/graphiql`);
    for (const name of ['CreateLink', 'Status', 'Job', 'Live']) await page.getByRole('tab', { name }).waitFor();
    await page.getByRole('button', { name: /Execute query/ }).click();
    await page.locator('.result-window').getByText('clientLink').first().waitFor();
    expect(await page.locator('.result-window').innerText()).not.toContain('errors');
    await page.getByRole('tab', { name: 'Live' }).click(); // once, and it is open
    let isLive = false;
    page.on('request', (request) => {
      isLive ||= request.headers()['accept'] === 'text/event-stream'; // not a WebSocket, which would have no headers
    });
    await until(async () => {
      await page.waitForTimeout(500); // soon after a tab was opened, the explorer does not know yet what to run
      if (!isLive) await page.getByRole('button', { name: /Execute query/ }).click();
      return isLive;
    });
    await page.locator('.result-window').getByText('NOT_FOUND').first().waitFor(); // the ids are examples here
    await introspected;
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await page.locator('.graphiql-doc-explorer').getByText('RefreshJob').first().waitFor();
    const docs = await page.locator('.graphiql-doc-explorer').innerText();
    expect(docs).not.toMatch(/federation__|link__|_Any|_Entity|_Service/);
    expect(elsewhere).toEqual([]);
  });

  it('the explorer is compressed, kept, and asked for again only when it has changed; the way to it is not kept', async () => {
    const moved = await fetch(`${gateway.origin}/graphql`, { headers: { accept: 'text/html' }, redirect: 'manual' });
    expect(moved.headers.get('cache-control')).toBe('no-store, no-transform'); // a proxy would give it to a WebSocket
    const first = await fetch(`${gateway.origin}/graphiql`);
    const tag = first.headers.get('etag') ?? '';
    expect([first.headers.get('content-encoding'), first.headers.get('cache-control')]).toEqual(['gzip', 'no-cache']);
    expect((await first.text()).length).toBeGreaterThan(8_000_000);
    const again = await fetch(`${gateway.origin}/graphiql`, { headers: { 'if-none-match': tag } });
    expect([again.status, (await again.text()).length]).toEqual([304, 0]);
  });

  it('/ leads to the explorer, even without storage, when Apollo Sandbox cannot be loaded; its policy lets nothing else in', async () => {
    // As a browser does that blocks cookies.
    const blocked = '{ configurable: true, get() { throw new Error("The operation is insecure."); } }';
    await page.addInitScript(`Object.defineProperty(window, 'localStorage', ${blocked})`);
    const response = await page.goto(gateway.origin);
    const policy = (await response?.allHeaders())?.['content-security-policy'] ?? '';
    expect(policy).toContain(
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src",
    );
    expect(policy).toContain("script-src 'unsafe-inline' https://embeddable-sandbox.cdn.apollographql.com ");
    await page.getByRole('link', { name: 'GraphiQL' }).click();
    await page.getByRole('tab', { name: 'CreateLink' }).waitFor();
  });

  it('/ starts Apollo Sandbox with the address and the first query', async () => {
    await page.route('https://embeddable-sandbox.cdn.apollographql.com/**', (route) =>
      route.fulfill({
        contentType: 'text/javascript',
        body: 'window.EmbeddedSandbox = class { constructor(options) { window.startedWith = options; } };',
      }),
    );
    await page.goto(gateway.origin);
    // Not `waitForFunction`: from its second look on, the page's policy refuses it.
    await until(async () => (await page.evaluate('window.startedWith')) !== undefined);
    expect(await page.evaluate('window.startedWith')).toMatchObject({
      initialEndpoint: `${gateway.origin}/graphql`,
      initialSubscriptionEndpoint: `${gateway.origin.replace('http', 'ws')}/graphql`,
      initialState: { document: expect.stringContaining('mutation CreateLink') },
    });
  });
});
