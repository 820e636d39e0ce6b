import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launchBrowser } from '../support/browser.js';
import { freePort } from '../support/freePort.js';
import {
  quickPolls,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
  type Texts,
  type TrustedProvider,
} from '../support/gateway.js';
import { startProgram } from '../support/program.js';
import { read } from '../support/repository.js';
import { run } from '../support/run.js';
import { scratch } from '../support/scratch.js';

const appPort = await freePort();
const page = read('docs/clients.md');
const [preparation = '', ...sections] = page.split(/^## /m);
/** Stands for the folder that holds the clone: the package is packed to here, and each section makes its own folder in it. */
const directory = scratch();
const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], npm_config_audit: 'false', CI: '1' };
/** A change of a taxpayer is seen within a second. */
const freshAtOnce = { TOKEN_FRESH_SECONDS: '1', TOKEN_BUDGET_PER_HOUR: '0' };
const [pack = '', makeFolder = ''] = commandsOf(preparation);

function commandsOf(text: string) {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, command = '']) => command.trim());
}

/** An empty folder in which a section was followed up to its last command, which starts the program. */
async function followed(title: string, replacements: Texts) {
  const text = sections.find((section) => section.startsWith(`${title}\n`)) ?? '';
  const folder = join(directory, title.replaceAll(' ', '-'));
  mkdirSync(folder);
  const runIn = (command: string) => run('sh', ['-c', command], { cwd: folder, env });
  await runIn(makeFolder);
  const parts = text.matchAll(/^(?:`([\w.]+)`:\n\n)?```(\w+)\n([\s\S]*?)^```$/gm);
  const commands: string[] = [];
  for (const [, file, language, code = ''] of parts) {
    let adapted = code;
    for (const [from, to] of Object.entries(replacements)) adapted = adapted.replaceAll(from, to);
    if (file !== undefined) writeFileSync(join(folder, file), adapted);
    else if (language === 'sh') commands.push(...adapted.trim().split('\n'));
    // Nothing is installed, generated or compiled before the files above it are there.
    while (commands.length > 1) await runIn(commands.shift() ?? '');
  }
  const [, printed] = /^```text\n([\s\S]*?)^```$/m.exec(text) ?? [];
  return { folder, command: commands[0] ?? '', printed };
}

describe('docs/clients.md', () => {
  let provider: TrustedProvider;
  let gateway: TestGateway;
  let token: string;

  beforeAll(async () => {
    provider = await startTrustedProvider();
    token = await provider.token({ scope: 'taxpayers:any taxpayers:read refresh-jobs:read client-links:create' });
    // With an identity provider, a gateway does not let in every page of this machine, as the guide's sandbox does.
    const CORS_ORIGINS = `http://localhost:${appPort}`;
    gateway = await startTestGateway({ ...provider.env, ...quickPolls, ...freshAtOnce, CORS_ORIGINS });
    // What `npm ci` installs in a clone, and the build, are there already.
    expect(pack).toMatch(/^npm ci && npm run build && npm pack \.\/packages\/client --pack-destination \.\.$/);
    await run('npm', ['pack', './packages/client', '--pack-destination', directory]);
  }, 180_000);

  const adapted = () => ({ 'http://localhost:4000': gateway.origin, '=> undefined': `=> '${token}'` });

  it.each(['urql', 'Relay', 'A Node.js backend'])(
    'prints what it says: %s',
    async (title) => {
      const { taxpayerId, jobId: shown } = gateway.sandbox.demo.jobs.processing;
      const { jobId } = gateway.sandbox.addJob({ taxpayerId, durationMs: Infinity });
      const { folder, command, printed } = await followed(title, { ...adapted(), [shown]: jobId });
      // The service refuses once for the backend, which tries again.
      if (title === 'A Node.js backend') {
        const fault = { status: 429, headers: { 'Retry-After': '1' } } as const;
        gateway.sandbox.arm({ endpoint: 'createClientLink', fault, times: 1 });
      }
      const { child, output, exited } = startProgram('sh', ['-c', command], { cwd: folder, env });
      child.stdout?.on('data', () => {
        if (output().endsWith('PROCESSING\n')) {
          gateway.sandbox.updateJob(taxpayerId, jobId, { status: 'completed' });
        }
      });
      expect([await exited, output()]).toEqual([0, printed]);
    },
    300_000,
  );

  it('shows the page of React in a browser', async () => {
    const { folder, command } = await followed('React', adapted());
    const serve = `exec ${command} --port ${appPort} --strictPort`;
    await startProgram('sh', ['-c', serve], { cwd: folder, env, detached: true }).printed(/./);
    const shown = await (await launchBrowser()).newPage();
    await shown.goto(`http://localhost:${appPort}`);
    for (const [text] of page.matchAll(/(?<=`)(Arthur|NOT_FOUND\.) [^`]*/g)) {
      await shown.getByText(text).waitFor();
    }
    const { authorized: id } = gateway.sandbox.demo.taxpayerIds;
    gateway.sandbox.updateTaxpayer(id, { status: 'COMPLETED' });
    await shown.getByText(': COMPLETED').waitFor();
  }, 900_000);
});
