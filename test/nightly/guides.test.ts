import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { quickPolls } from '../support/liveJob.js';
import { run } from './support/run.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const compilerOptions = {
  ...{ target: 'ES2022', lib: ['ES2022', 'DOM', 'DOM.AsyncIterable'], module: 'NodeNext', types: [] },
  ...{ strict: true, skipLibCheck: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
  ...{ rootDir: '.', outDir: 'built' },
};
const scratch = mkdtempSync(join(tmpdir(), 'taxpayer-gateway-guides-'));
const names = readdirSync(join(root, 'docs/guides')).map((name) => name.replace('.md', ''));
const env = { PATH: process.env['PATH'] };
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What a reader of a guide has after having followed it up to the start of the program. */
function followed(name: string, replacements: Readonly<Record<string, string>>) {
  const text = readFileSync(join(root, `docs/guides/${name}.md`), 'utf8');
  const folder = mkdtempSync(join(scratch, `${name}-`));
  const [, packages = ''] = /^npm install (.*)$/m.exec(text) ?? [];
  for (const each of packages.split(' ').filter(Boolean)) {
    const link = join(folder, 'node_modules', each);
    mkdirSync(dirname(link), { recursive: true });
    const own = each === 'taxpayer-gateway-client' ? 'packages/client' : `test/nightly/node_modules/${each}`;
    expect({ each, isThere: existsSync(join(root, own)) }).toEqual({ each, isThere: true });
    symlinkSync(join(root, own), link);
  }
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  const files = [...text.matchAll(/^`([\w.]+)`:\n\n```\w+\n([\s\S]*?)^```$/gm)].map(([, file = '', code = '']) => {
    let adapted = code;
    for (const [from, to] of Object.entries(replacements)) adapted = adapted.replaceAll(from, to);
    writeFileSync(join(folder, file), adapted);
    return file;
  });
  const [, printed] = /^```text\n([\s\S]*?)^```$/m.exec(text) ?? [];
  return { folder, program: files.at(-1) ?? '', printed };
}

/** Checks the types of a program, or runs Relay's compiler, and gives the module to start. */
async function prepared(name: string, { folder, program }: ReturnType<typeof followed>): Promise<string> {
  const succeed = async (...args: string[]) => {
    const { code, output } = await run(process.execPath, args, { cwd: folder, env });
    expect({ code, output }).toMatchObject({ code: 0 });
  };
  if (name === 'relay') await succeed('node_modules/relay-compiler/cli.js', 'relay.config.json');
  if (!program.endsWith('.ts')) return program;
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [program] }));
  await succeed(fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json'))));
  return `built/${program.replace('.ts', '.js')}`;
}

describe('The guide', () => {
  let provider: TrustedProvider;
  let gateway: TestGateway;
  let token: string;

  beforeAll(async () => {
    provider = await startTrustedProvider();
    const scope = 'taxpayers:any taxpayers:read refresh-jobs:read client-links:create';
    token = await provider.token({ scope });
    gateway = await startTestGateway({ ...provider.env, ...quickPolls });
  }, 180_000);
  afterAll(async () => {
    await gateway?.stop();
    await provider?.stop();
  });

  it.each(names)('%s prints what it says', async (name) => {
    const { taxpayerId, jobId: shown } = gateway.sandbox.demo.jobs.processing;
    const { jobId } = gateway.sandbox.control.addJob({ taxpayerId, endsAs: null });
    const { origin } = gateway;
    const guide = followed(name, {
      'http://localhost:4000': origin,
      [shown]: jobId,
      '=> undefined': `=> '${token}'`,
    });
    const module = await prepared(name, guide);
    // The service refuses once for the backend, which tries again.
    if (name === 'node-backend') {
      const fault = { status: 429, headers: { 'Retry-After': '1' } } as const;
      gateway.sandbox.control.arm({ endpoint: 'createClientLink', fault, times: 1 });
    }
    const child = spawn(process.execPath, [module], { cwd: guide.folder, env });
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
    expect({ output, complaint, code }).toEqual({ output: guide.printed, complaint: '', code: 0 });
  });
});
