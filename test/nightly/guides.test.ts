import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { startTrustedProvider } from '../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { quickPolls } from '../support/liveJob.js';
import { scratch } from '../support/scratch.js';
import { run } from './support/run.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/clients.md'), 'utf8');
const [preparation = '', ...sections] = page.split(/^## /m);
/** Holds the package beside the folders, as a clone that was followed to there. */
const directory = scratch();
const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], npm_config_audit: 'false', CI: '1' };
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

// In a browser, the example web app is tried: examples/web.
describe('docs/clients.md', () => {
  let gateway: TestGateway;
  let token: string;

  beforeAll(async () => {
    const provider = await startTrustedProvider();
    token = await provider.token({ scope: 'taxpayers:any taxpayers:read refresh-jobs:read client-links:create' });
    expect(start).toBe('npm start');
    gateway = await startTestGateway({ ...provider.env, ...quickPolls });
    // What `npm ci` installs in a clone, and the build, are there already.
    expect(pack).toMatch(/^npm ci && npm run build && npm pack \.\/packages\/client --pack-destination \.\.$/);
    execFileSync('npm', ['pack', './packages/client', '--pack-destination', directory], { cwd: root, stdio: 'ignore' });
  }, 180_000);

  it.each(['urql', 'Relay', 'A Node.js backend'])(
    'prints what it says: %s',
    async (title) => {
      const { taxpayerId, jobId: shown } = gateway.sandbox.demo.jobs.processing;
      const { jobId } = gateway.sandbox.control.addJob({ taxpayerId, endsAs: null });
      const adapted = { 'http://localhost:4000': gateway.origin, '=> undefined': `=> '${token}'`, [shown]: jobId };
      const { folder, command, printed } = await followed(title, adapted);
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
});
