import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launchBrowser } from '../../support/browser.js';
import { type Answer, type Environment, postQuery, readyOrigin } from '../../support/gateway.js';
import { startIdentityProvider } from '../../support/identityProvider.js';
import { startProgram } from '../../support/program.js';
import { codeBlocks, read } from '../../support/repository.js';
import { scratch } from '../../support/scratch.js';

const readme = read('README.md');
const blocks = codeBlocks(readme).filter(({ language }) => language !== 'mermaid');
const [commands, firstQuery, firstAnswer, createLink, follow, realService, ...others] = blocks.map(({ text }) => text);

const directory = scratch();

/** Runs a command of the README in a shell, but on a free port and with a cache of its own. */
function run(command: string, env: Environment = {}) {
  const PATH = process.env['PATH'];
  const here = { PATH, HOME: directory, PORT: '0', CACHE_URL: `file:${join(directory, 'cache')}`, ...env };
  return readyOrigin(startProgram('sh', ['-c', `exec ${command}`], { env: here, detached: true }));
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
    for (const path of ['/', '/graphiql']) {
      expect((await fetch(`${origin}${path}`)).status).toBe(200);
      const posted = await fetch(`${origin}${path}`, { method: 'POST' });
      expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      expect(await posted.text()).toBe('Operations are on /graphql\n');
    }

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
