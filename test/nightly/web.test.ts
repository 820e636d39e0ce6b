import { existsSync } from 'node:fs';
import type { Browser, Page, WebSocketRoute } from 'playwright-core';
import { launchBrowser } from '../support/browser.js';
import { startProgram } from '../support/program.js';
import { read } from '../support/repository.js';
import { run } from '../support/run.js';
import { until } from '../support/until.js';

const folder = 'examples/web/';
const axe = read('node_modules/axe-core/axe.min.js');

let app: string;
let browser: Browser;

beforeAll(async () => {
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
    const context = await browser.newContext();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const page = await context.newPage();
    await page.goto(app);
    await page.getByText('Nobody is followed yet').waitFor();
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

    await page.locator('#taxpayer-status', { hasText: 'authorized' }).waitFor();
    await page.locator('#job-taxpayer-id').fill(taxpayerId);
    await page.locator('#job-id').fill(jobId);
    await page.locator('#job-id').press('Enter');
    await page.locator('#job-status', { hasText: 'processing' }).waitFor();
    expect(await page.locator('[aria-busy=true]').count()).toBe(0); // screen readers may withhold what is in a busy part
    expect(await seriousViolations(page)).toEqual([]);
    await page.locator('#job-status', { hasText: 'completed' }).waitFor({ timeout: 60_000 });
    await page.locator('#taxpayer-status', { hasText: 'completed' }).waitFor();
    expect(await page.getByText('Reconnecting…').count()).toBe(0);
    expect(await seriousViolations(page)).toEqual([]);
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
    expect(await seriousViolations(page)).toEqual([]);
  });

  it('connects again when a WebSocket is silent', async () => {
    const page = await browser.newPage();
    await page.clock.install();
    const sockets: WebSocketRoute[] = [];
    await page.routeWebSocket(/graphql$/, (socket) => void sockets.push(socket));
    await page.goto(app);
    await page.locator('#taxpayer-id').fill('x');
    await page.getByRole('button', { name: 'Follow' }).click();
    await until(() => page.clock.fastForward(12_000).then(() => sockets.length === 2));
  });

  it('has the right types: Vite does not look at them', async () => {
    await run('npm', ['run', '--silent', 'types'], { cwd: folder });
  });

  it('says so without JavaScript', async () => {
    const page = await browser.newPage({ javaScriptEnabled: false });
    await page.goto(app);
    expect(await page.locator('body').innerText()).toBe('This page needs JavaScript.');
  });
});

async function seriousViolations(page: Page) {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate('axe.run()')) as { violations: { impact: string }[] };
  return violations.filter(({ impact }) => /serious|critical/.test(impact));
}
