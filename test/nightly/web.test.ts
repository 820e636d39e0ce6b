import { existsSync, mkdirSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../support/browser.js';
import { startProgram } from '../support/program.js';
import { read } from '../support/repository.js';
import { run } from '../support/run.js';
import { until } from '../support/until.js';

const folder = 'examples/web/';
const artefacts = 'test-artifacts/web/';
const axe = read('node_modules/axe-core/axe.min.js');

let app: string;
let browser: Browser;

beforeAll(async () => {
  mkdirSync(artefacts, { recursive: true });
  if (!existsSync(`${folder}node_modules/vite`)) {
    const env = { ...process.env, NODE_OPTIONS: '' };
    await run('npm', ['ci', '--prefer-offline', '--no-audit'], { cwd: folder, env });
  }
  // The app and what it needs, in a process group of its own, as a terminal does.
  const env = { PATH: process.env['PATH'], APP_PORT: '0', GATEWAY_PORT: '0' };
  const started = startProgram(process.execPath, ['start.js'], { cwd: folder, env, detached: true });
  app = await started.printed(/^App: +(\S+)$/m);
  browser = await launchBrowser();
}, 300_000);

describe('The example web app', () => {
  it('leads from a link by the hosted page to an authorized taxpayer and a completed job', async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const page = await context.newPage();
    await page.goto(app);
    await page.getByText('Nobody is followed yet').waitFor();
    await picture(page, '1-empty');
    expect(await seriousViolations(page)).toEqual([]);

    await page.getByLabel('Your reference').fill('case-17');
    await page.getByLabel('First name').fill('Fay');
    await page.getByLabel('Last name').fill('Example');
    await page.getByLabel('Social security number').fill('900-00-1234');
    await page.locator('summary', { hasText: 'Business' }).click();
    await page.getByLabel('Business name').fill('Example Bakery');
    await page.locator('summary', { hasText: 'Address' }).click();
    await page.getByLabel('City').fill('Springfield');
    await page.locator('summary', { hasText: 'Transcripts' }).click();
    await page.getByLabel('1095-A').fill('2022, 2023');
    await page.getByRole('button', { name: 'Create link' }).click();
    await page.getByText('The link is ready').waitFor();
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const link = await page.evaluate('navigator.clipboard.readText()');
    await picture(page, '2-link');
    expect(await seriousViolations(page)).toEqual([]);

    const opening = context.waitForEvent('page');
    await page.getByRole('link', { name: 'Open' }).click();
    const hosted = await opening;
    expect(hosted.url()).toBe(link);
    await hosted.getByText('Fay Example').waitFor();
    const taxpayerId = (await hosted.locator('#taxpayer-id').textContent()) ?? '';
    await page.locator('#taxpayer-id').fill(taxpayerId);
    await page.getByRole('button', { name: 'Follow' }).press('Enter');
    await page.locator('#taxpayer-status', { hasText: 'created' }).waitFor();
    await page.getByText(/Since .* \(\d+ s ago\)/).waitFor();
    await hosted.getByRole('button', { name: 'Give consent' }).click();
    await page.locator('#taxpayer-status', { hasText: 'consent received' }).waitFor();
    await hosted.getByRole('button', { name: 'Sign and submit' }).click();
    await hosted.getByRole('button', { name: 'Authority accepts' }).click();
    await hosted.getByRole('button', { name: 'Start a data refresh' }).click();
    const jobId = (await hosted.locator('#job-id').textContent()) ?? '';
    await picture(hosted, '3-hosted');

    await page.locator('#taxpayer-status', { hasText: 'authorized' }).waitFor();
    await page.locator('#job-taxpayer-id').fill(taxpayerId);
    await page.locator('#job-id').fill(jobId);
    await page.locator('#job-id').press('Enter');
    await page.locator('#job-status', { hasText: 'processing' }).waitFor();
    expect(await page.locator('[aria-busy=true]').count()).toBe(0); // screen readers may withhold what is in a busy part
    await picture(page, '4-processing');
    expect(await seriousViolations(page)).toEqual([]);
    await page.locator('#job-status', { hasText: 'completed' }).waitFor({ timeout: 60_000 });
    await page.locator('#taxpayer-status', { hasText: 'completed' }).waitFor();
    expect(await page.getByText('Reconnecting…').count()).toBe(0);
    await picture(page, '5-completed');
    expect(await seriousViolations(page)).toEqual([]);
    await context.close();
  }, 180_000);

  it('tells what to do about an error, by its code', async () => {
    const page = await browser.newPage({ viewport: { width: 420, height: 900 }, colorScheme: 'dark' });
    await page.goto(app);
    await page.locator('#taxpayer-id').fill('00000000-0000-4000-8000-000000000000');
    await page.getByRole('button', { name: 'Follow' }).click();
    await page.getByText('No taxpayer or job has this id').first().waitFor();
    await page.getByText('NOT_FOUND').waitFor();
    await page.locator('#job-taxpayer-id').fill('00000000-0000-4000-8000-000000000000');
    await page.locator('#job-id').fill('x');
    await page.getByRole('button', { name: 'Watch' }).click();
    await page.locator('section[aria-labelledby=job]').getByText('NOT_FOUND').waitFor();
    const again = page.waitForEvent('websocket', (socket) => socket.url().endsWith('/graphql'));
    await page.getByRole('button', { name: 'Watch' }).click();
    await again;
    await page.locator('section[aria-labelledby=job]').getByText('NOT_FOUND').waitFor();
    await picture(page, '6-errors');
    expect(await seriousViolations(page)).toEqual([]);
    await page.close();
  }, 120_000);

  it('connects again when a WebSocket no longer answers', async () => {
    const page = await browser.newPage();
    await page.clock.install();
    let connections = 0;
    await page.routeWebSocket(/graphql$/, (socket) => {
      connections += 1;
      socket.onMessage(() => connections === 1 && socket.send('{"type":"connection_ack"}'));
    });
    await page.goto(app);
    await page.locator('#taxpayer-id').fill('x');
    await page.getByRole('button', { name: 'Follow' }).click();
    await until(async () => page.clock.fastForward(12_000).then(() => connections === 2));
    await page.close();
  }, 60_000);

  it('has the right types: Vite does not look at them', async () => {
    await run('npm', ['run', '--silent', 'types'], { cwd: folder });
  }, 120_000);

  it('says so without JavaScript', async () => {
    const page = await browser.newPage({ javaScriptEnabled: false });
    await page.goto(app);
    expect(await page.locator('body').innerText()).toBe('This page needs JavaScript.');
    await page.close();
  });
});

async function picture(page: Page, name: string) {
  await page.screenshot({ path: `${artefacts}${name}.png`, fullPage: true });
}

async function seriousViolations(page: Page) {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate('axe.run()')) as {
    violations: { id: string; impact: string; nodes: { html: string }[] }[];
  };
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
