import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { atEnd } from '../support/atEnd.js';
import { startTrustedProvider, type TrustedProvider } from '../support/authenticated.js';
import { launchBrowser } from '../support/browser.js';
import { freePort } from '../support/freePort.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { quickPolls } from '../support/liveJob.js';
import { scratch } from '../support/scratch.js';
import { run } from './support/run.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/clients.md'), 'utf8');
const [preparation = '', ...sections] = page.split(/^## /m);
/** Holds the package beside the folders, as a clone that was followed to there. */
const directory = scratch();
const artefacts = join(root, 'test-artifacts/guides/');
const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], npm_config_audit: 'false', CI: '1' };
/** A change of a taxpayer is seen within a second. */
const freshAtOnce = { TOKEN_FRESH_SECONDS: '1', TOKEN_BUDGET_PER_HOUR: '0' };
const [pack = '', start = '', makeFolder = ''] = commandsOf(preparation);

function commandsOf(text: string): string[] {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, command = '']) => command.trim());
}

async function succeed(command: string, cwd: string): Promise<string> {
  const { code, output } = await run('sh', ['-c', command], { cwd, env });
  expect({ command, code, output }).toMatchObject({ code: 0 });
  return output;
}

/** An empty folder in which a section was followed up to its last command, which starts the program. */
async function followed(title: string, replacements: Readonly<Record<string, string>>) {
  const text = sections.find((section) => section.startsWith(`${title}\n`)) ?? '';
  const folder = join(directory, title.replaceAll(' ', '-'));
  mkdirSync(folder);
  await succeed(makeFolder, folder);
  const parts = text.matchAll(/^(?:`([\w.]+)`:\n\n)?```(\w+)\n([\s\S]*?)^```$/gm);
  const commands: string[] = [];
  for (const [, file, language, code = ''] of parts) {
    let adapted = code;
    for (const [from, to] of Object.entries(replacements)) adapted = adapted.replaceAll(from, to);
    if (file !== undefined) writeFileSync(join(folder, file), adapted);
    else if (language === 'sh') commands.push(...adapted.trim().split('\n'));
    // Nothing is installed, generated or compiled before the files above it are there.
    while (commands.length > 1) await succeed(commands.shift() ?? '', folder);
  }
  const [, printed] = /^```text\n([\s\S]*?)^```$/m.exec(text) ?? [];
  return { folder, command: commands[0] ?? '', printed };
}

describe('docs/clients.md', () => {
  let provider: TrustedProvider;
  let gateway: TestGateway;
  let token: string;
  const appPort = freePort();

  beforeAll(async () => {
    provider = await startTrustedProvider();
    token = await provider.token({ scope: 'taxpayers:any taxpayers:read refresh-jobs:read client-links:create' });
    expect(start).toBe('npm start');
    // The sandbox lets in every page of this machine; this gateway has an identity provider.
    const CORS_ORIGINS = `http://localhost:${await appPort}`;
    gateway = await startTestGateway({ ...provider.env, ...quickPolls, ...freshAtOnce, CORS_ORIGINS });
    // What `npm ci` installs in a clone, and the build, are there already.
    expect(pack).toMatch(/^npm ci && npm run build && npm pack \.\/packages\/client --pack-destination \.\.$/);
    execFileSync('npm', ['pack', './packages/client', '--pack-destination', directory], { cwd: root, stdio: 'ignore' });
  }, 180_000);

  const adapted = () => ({ 'http://localhost:4000': gateway.origin, '=> undefined': `=> '${token}'` });

  it.each(['urql', 'Relay', 'A Node.js backend'])(
    'prints what it says: %s',
    async (title) => {
      const { taxpayerId, jobId: shown } = gateway.sandbox.demo.jobs.processing;
      const { jobId } = gateway.sandbox.control.addJob({ taxpayerId, endsAs: null });
      const { folder, command, printed } = await followed(title, { ...adapted(), [shown]: jobId });
      // The service refuses once for the backend, which tries again.
      if (title === 'A Node.js backend') {
        const fault = { status: 429, headers: { 'Retry-After': '1' } } as const;
        gateway.sandbox.control.arm({ endpoint: 'createClientLink', fault, times: 1 });
      }
      const child = spawn('sh', ['-c', command], { cwd: folder, env });
      let output = '';
      child.stdout.on('data', (chunk) => {
        output += chunk;
        if (output.endsWith('PROCESSING\n')) {
          gateway.sandbox.control.updateJob(taxpayerId, jobId, { status: 'completed' });
        }
      });
      let complaint = '';
      child.stderr.on('data', (chunk) => (complaint += chunk));
      const [code] = await once(child, 'close');
      expect({ output, complaint, code }).toEqual({ output: printed, complaint: '', code: 0 });
    },
    300_000,
  );

  it('shows the page of React in a browser', async () => {
    const { folder, command } = await followed('React', adapted());
    const port = await appPort;
    const vite = spawn('sh', ['-c', `exec ${command} --port ${port} --strictPort`], {
      cwd: folder,
      env,
      detached: true,
    });
    const closed = once(vite, 'close');
    atEnd(() => {
      // npx and what it started, as Ctrl-C in a terminal would.
      if (vite.pid !== undefined) process.kill(-vite.pid, 'SIGINT');
      return closed;
    });
    await once(vite.stdout, 'data');
    const shown = await (await launchBrowser()).newPage();
    await shown.goto(`http://localhost:${port}`);
    for (const [text] of page.matchAll(/(?<=`)(Arthur|NOT_FOUND\.) [^`]*/g)) {
      await shown.getByText(text).waitFor();
    }
    const { authorized: id } = gateway.sandbox.demo.taxpayerIds;
    gateway.sandbox.control.updateTaxpayer(id, { status: 'COMPLETED' });
    await shown.getByText(/: COMPLETED/).waitFor();
    mkdirSync(artefacts, { recursive: true });
    await shown.screenshot({ path: `${artefacts}react.png` });
  }, 900_000);
});
