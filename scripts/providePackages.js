// Folders with a package.json of their own hold what only one command or a few tests need (Hive Gateway alone is 450 MB).
// Their packages are installed when first needed, and again when their lock file changes.

import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { orSentence } from './orSentence.js';
import { run, runInPlace } from './run.js';
import { underLock } from './underLock.js';

const usage = `Usage: node scripts/providePackages.js <folder> [command …]

Installs the packages of the folder (from the repository's root) where needed, then runs the command, with theirs on its PATH.`;

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Installs the packages of `folder` (from the repository's root) unless they are there as its lock file says. Waits when
 * another process is installing them. Throws one sentence and what npm printed when npm cannot.
 */
export async function providePackages(folder) {
  const lockFile = await readFile(join(root, folder, 'package-lock.json'), 'utf8');
  const stamp = join(root, folder, 'node_modules/.installed');
  const wanted = createHash('sha256').update(lockFile).digest('hex');
  const isInstalled = async () => (await readFile(stamp, 'utf8').catch(() => '')) === wanted;
  if (await isInstalled()) return;
  await underLock(join(root, '.build', `packages-${folder.replaceAll('/', '-')}.lock`), async () => {
    if (await isInstalled()) return;
    await rm(stamp, { force: true });
    await install(folder, Object.keys(JSON.parse(lockFile).packages).length - 1);
    await mkdir(dirname(stamp), { recursive: true });
    await writeFile(stamp, wanted);
  });
}

/** The environment in which the commands of `folder` find each other and their plugins, whatever the working directory. */
export function withPackagesOf(folder) {
  const modules = join(root, folder, 'node_modules');
  const path = [join(modules, '.bin'), process.env.PATH].filter(Boolean).join(delimiter);
  return { ...process.env, PATH: path, NODE_PATH: modules };
}

async function install(folder, count) {
  const options = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  const title = `Installing the packages of ${folder} (up to ${count}), once…`;
  const { code, output } = await runNpm(['ci', ...options], { cwd: join(root, folder), title });
  if (code === 0) return;
  throw new Error(
    `The packages of ${folder} could not be installed: \`npm ci\` there needs the npm registry and failed.\n${output}`,
  );
}

/** Runs npm in the folder `cwd`; shows the `title` and how long it takes. */
export async function runNpm(args, { cwd, title }) {
  const startedAt = Date.now();
  const seconds = () => `${Math.round((Date.now() - startedAt) / 1000)} s`;
  process.stderr.write(title);
  const progress = setInterval(() => process.stderr.write(` ${seconds()}…`), 10_000);
  let end = '';
  try {
    // What Jest is started with is not for npm.
    const result = await run('npm', args, { cwd, env: { ...process.env, NODE_OPTIONS: '' } });
    if (result.code === 0) end = ` done in ${seconds()}`;
    return result;
  } finally {
    clearInterval(progress);
    process.stderr.write(`${end}\n`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [folder, command, ...args] = process.argv.slice(2);
  if (!folder || folder.startsWith('-')) {
    console.error(usage);
    process.exit(2);
  }
  await orSentence(async () => {
    await providePackages(folder);
    if (command !== undefined) await runInPlace(command, args, withPackagesOf(folder));
  });
}
