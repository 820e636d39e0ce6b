import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { atEnd } from '../../support/atEnd.js';
import { launchBrowser } from '../../support/browser.js';
import { type Answer, postQuery } from '../../support/gateway.js';
import { startIdentityProvider } from '../../support/identityProvider.js';
import { scratch } from '../../support/scratch.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const blocks = [...readme.matchAll(/^```((?!mermaid)\w+)\n([\s\S]*?)^```$/gm)].map(([, language, text = '']) => ({
  language,
  text,
}));
const [commands, firstQuery, firstAnswer, createLink, follow, realService, ...others] = blocks.map(({ text }) => text);

const directory = scratch();

/** Runs a command of the README in a shell, but on a free port and with a cache of its own. */
async function run(command: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const child = spawn('sh', ['-c', `exec ${command}`], {
    cwd: root,
    env: {
      PATH: process.env['PATH'],
      HOME: directory,
      PORT: '0',
      CACHE_URL: `file:${join(directory, 'cache')}`,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const closed = once(child, 'close');
  atEnd(async () => {
    // npm and what it started, as Ctrl-C in a terminal would.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGINT');
    await closed;
  });
  let text = '';
  for await (const chunk of child.stdout) {
    text += String(chunk);
    const port = /"graphql":"http:\/\/[^"]*:(\d+)\/graphql"/.exec(text)?.[1];
    if (port) return `http://127.0.0.1:${port}`;
  }
  throw new Error(`The command ended: ${text}`);
}

describe('The README', () => {
  it('has the blocks that are tried below, and no others', () => {
    expect(blocks.map(({ language }) => language)).toEqual(['sh', 'graphql', 'json', 'graphql', 'graphql', 'sh']);
    expect(others).toEqual([]);
    expect(readme.split('\n').length).toBeLessThanOrEqual(90);
  });

  it('shows the first query with its answer within thirty lines', () => {
    const line = readme.slice(0, readme.indexOf(firstAnswer ?? '')).split('\n').length;
    expect(line).toBeLessThanOrEqual(30);
  });

  it('starts the gateway, gets the answer it shows, and leads through the flow', async () => {
    expect(commands?.trim().split('\n')).toEqual(['npm ci', 'npm start']);
    const origin = await run('npm start');
    const first = await postQuery(origin, firstQuery ?? '');
    expect({ data: first.data }).toEqual(JSON.parse(firstAnswer ?? ''));
    for (const path of ['/', '/graphiql']) expect((await fetch(`${origin}${path}`)).status).toBe(200);

    const created: Answer<{ createClientLink: { clientLink: { url: string } } }> = await postQuery(
      origin,
      createLink ?? '',
    );
    const variables = await walk(created.data?.createClientLink.clientLink.url ?? '');
    const { data } = await postQuery(origin, follow ?? '', variables);
    expect(data).toMatchObject({ taxpayerToken: { status: 'AUTHORIZED' }, refreshJob: { status: 'COMPLETED' } });
  }, 90_000);

  it('starts the gateway for the real service', async () => {
    const provider = await startIdentityProvider();
    const secret = join(directory, 'secret');
    writeFileSync(secret, 'not-real\n');
    const command = (realService ?? '')
      .replace('/run/secrets/service', secret)
      .replace('https://id.example/', provider.issuer);
    // This provider has no metadata to find its keys by.
    const origin = await run(`env ${command}`, { AUTH_JWKS_URL: provider.jwksUrl });
    const { status, errors } = await postQuery(origin, '{ __typename }');
    expect([status, errors?.[0]?.extensions.code]).toEqual([401, 'UNAUTHENTICATED']);
    const authorization = `Bearer ${await provider.token()}`;
    expect((await postQuery(origin, '{ __typename }', {}, { authorization })).status).toBe(200);
  });
});

/** What the README tells to do in a browser; gives the ids that the page shows at the end. */
async function walk(url: string): Promise<{ taxpayerId: string; jobId: string }> {
  const page = await (await launchBrowser()).newPage();
  await page.goto(url);
  await page.getByRole('button', { name: 'Give consent' }).click();
  await page.getByRole('button', { name: 'Sign and submit' }).click();
  await page.getByRole('button', { name: 'Authority accepts' }).click();
  await page.getByRole('button', { name: 'Start a data refresh' }).click();
  return {
    taxpayerId: await page.locator('#taxpayer-id').innerText(),
    jobId: await page.locator('#job-id').innerText(),
  };
}
