import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../../support/browser.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';

let browser: Browser;
let gateway: TestGateway;
let page: Page;
beforeAll(async () => {
  browser = await launchBrowser();
  gateway = await startTestGateway({}, { jobDurationMs: 500 });
}, 60_000);
afterAll(async () => {
  await browser.close();
  await gateway.stop();
});
beforeEach(async () => {
  page = await browser.newPage();
});
afterEach(() => page.close());

describe('From a client link to refreshed data', () => {
  it('a taxpayer walks through the hosted flow while the client follows in GraphQL', async () => {
    const { data } = await gateway.query<{ createClientLink: { clientLink: { url: string } } }>(
      `mutation {
        createClientLink(input: {
          settings: { flowType: "full", prefillData: { personalInfo: { firstName: "Fay", ssn: "900-00-1234" } } }
        }) { clientLink { id url } }
      }`,
    );
    await page.goto(data?.createClientLink.clientLink.url ?? '');
    expect(await page.getByText('Fay').first().isVisible()).toBe(true);
    expect(await page.content()).not.toContain('900-00-1234');

    expect(await page.getByText('up to a minute').isVisible()).toBe(true);
    await page.getByRole('button', { name: 'Give consent' }).click();
    await page.getByRole('button', { name: 'Sign and submit' }).click();
    await page.getByRole('button', { name: 'Authority accepts' }).click();
    // The gateway caches the record, so the first query comes after the authorization.
    await page.getByRole('button', { name: 'Start a data refresh' }).click();
    const taxpayerId = await page.locator('#taxpayer-id').innerText();
    const jobId = await page.locator('#job-id').innerText();

    // The first read starts the job's clock; the second query waits until the job is complete.
    const answer = await gateway.query<{ token: { status: string }; job: { status: string } }>(
      `query ($taxpayerId: ID!, $jobId: ID!) {
        token: taxpayerToken(taxpayerId: $taxpayerId) { status provider }
        job: refreshJob(taxpayerId: $taxpayerId, jobId: $jobId) { status }
      }`,
      { taxpayerId, jobId },
    );
    expect(answer.errors).toBeUndefined();
    expect(answer.data).toMatchObject({ token: { status: 'AUTHORIZED' }, job: { status: 'PROCESSING' } });
    const waited = await gateway.query(
      'query ($taxpayerId: ID!, $jobId: ID!) { refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: 20) { status } }',
      { taxpayerId, jobId },
    );
    expect(waited.data).toEqual({ refreshJob: { status: 'COMPLETED' } });

    const query = await page.locator('#graphql-query').innerText();
    expect((await gateway.query(query)).data).toMatchObject({ refreshJob: { status: 'COMPLETED' } });
  });
});

describe('In a browser without internet', () => {
  it('/graphiql loads, asks its first query and shows the answer', async () => {
    const elsewhere: string[] = [];
    page.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== gateway.origin) {
        elsewhere.push(request.url());
      }
    });
    await page.goto(`${gateway.origin}/graphiql`);
    await page.getByRole('button', { name: /Execute query/ }).click();
    await page.locator('.result-window').getByText('__typename').waitFor();
    expect(await page.locator('.result-window').innerText()).toContain('Query');
    expect(elsewhere).toEqual([]);
  });

  it('/ shows where to go when Apollo Sandbox cannot be loaded, under a policy that lets nothing else in', async () => {
    const response = await page.goto(gateway.origin);
    const policy = (await response?.allHeaders())?.['content-security-policy'] ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toMatch(/script-src 'nonce-[^']+' https:\/\/embeddable-sandbox\.cdn\.apollographql\.com/);
    expect(policy).toContain("frame-ancestors 'none'");
    await page.getByRole('link', { name: 'explorer that needs none' }).click();
    await page.waitForURL(`${gateway.origin}/graphiql`);
  });

  it('/ starts Apollo Sandbox with the address and the first query', async () => {
    await page.route('https://embeddable-sandbox.cdn.apollographql.com/**', (route) =>
      route.fulfill({
        contentType: 'text/javascript',
        body: 'window.EmbeddedSandbox = class { constructor(options) { window.startedWith = options; } };',
      }),
    );
    await page.goto(gateway.origin);
    expect(await page.evaluate('window.startedWith')).toMatchObject({
      initialEndpoint: `${gateway.origin}/graphql`,
      initialSubscriptionEndpoint: `${gateway.origin.replace('http', 'ws')}/graphql`,
      initialState: { document: gateway.gateway.firstQuery },
    });
  });

  it('neither page is served where introspection is off', async () => {
    const closed = await startTestGateway({ INTROSPECTION: 'false' });
    for (const path of ['/', '/graphiql']) expect((await fetch(`${closed.origin}${path}`)).status).toBe(404);
    await closed.stop();
  });
});
