// Builds src/ into dist/. Run as a command it always builds; `ensureBuilt` builds only when dist/ is missing or stale.
//
// Several processes may start at once in one checkout (npm start beside npm test), so a build happens under a lock, in a
// directory of its own, and reaches dist/ by a rename: nobody ever imports half of one.

import { existsSync } from 'node:fs';
import { cp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { orSentence } from './orSentence.js';
import { readArguments } from './readArguments.js';
import { run } from './run.js';
import { underLock } from './underLock.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const src = join(root, 'src');
const client = join(root, 'packages/client');
const dist = join(root, 'dist');
const clientDist = join(client, 'dist');
const scratch = join(root, '.build');
const lock = join(scratch, 'lock');
/** What the build depends on beside the sources: the bundle holds the packages of the lock file. */
const settings = ['package-lock.json', 'tsconfig.json', 'packages/client/tsconfig.json'];
const inputFiles = [...settings, 'scripts/build.js', 'scripts/bundle.js', 'scripts/clientSdl.js'];
/** What a source deleted while we look counts as: changed just now. */
const gone = { mtimeMs: Number.POSITIVE_INFINITY };

/** Builds when dist/ is missing or older than a source; waits when another process is building. Throws what the compiler printed. */
export async function ensureBuilt() {
  if (!existsSync(lock) && (await isFresh())) return;
  await underLock(lock, async () => {
    if (!(await isFresh())) await buildNow();
  });
}

/** Builds whether or not it is needed. Throws what the compiler printed. */
export function build() {
  return underLock(lock, buildNow);
}

async function isFresh() {
  const built = await stat(join(dist, 'main.js')).catch(() => undefined);
  if (!built || !existsSync(join(clientDist, 'index.js'))) return false;
  // A copy of this project that only runs may lack some of them.
  const inputs = inputFiles.map((path) => join(root, path)).filter(existsSync);
  // A directory's own time counts too: it is what changes when a source is deleted or renamed.
  for (const sources of [src, join(client, 'src')]) {
    inputs.push(sources);
    for (const item of await readdir(sources, { recursive: true })) inputs.push(join(sources, item));
  }
  const times = await Promise.all(inputs.map(async (path) => (await stat(path).catch(() => gone)).mtimeMs));
  return built.mtimeMs >= Math.max(...times);
}

async function buildNow() {
  const startedAt = new Date();
  // The same names for every build, because the hashes in the names of chunks depend on them.
  const out = join(scratch, 'out');
  const clientOut = join(scratch, 'client');
  const old = join(scratch, 'old');
  process.stderr.write('Building…');
  try {
    for (const left of [out, clientOut, old]) await rm(left, { recursive: true, force: true });
    await Promise.all([compile(root, out), compile(client, clientOut)]);
    await cp(src, out, { recursive: true, filter: (path) => !path.endsWith('.ts') });
    // Only a build needs packages, and esbuild is none of production.
    const [{ bundleMain }, { clientSdl }] = await Promise.all([import('./bundle.js'), import('./clientSdl.js')]);
    const sdl = await readFile(join(src, 'schema/schema.graphql'), 'utf8');
    await writeFile(join(clientOut, 'schema.graphql'), clientSdl(sdl));
    await bundleMain(out);
    // Dated by the start of the build, so that a source saved meanwhile makes this build stale.
    await utimes(join(out, 'main.js'), startedAt, startedAt);
    await replace(clientDist, clientOut, old);
    await replace(dist, out, old);
    process.stderr.write(` done in ${((Date.now() - startedAt.getTime()) / 1000).toFixed(1)} s\n`);
  } catch (error) {
    process.stderr.write('\n');
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error('A build needs the development packages: run npm ci first.', { cause: error });
  } finally {
    for (const left of [out, clientOut, old]) await rm(left, { recursive: true, force: true });
  }
}

async function compile(project, outDir) {
  const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')));
  const args = [tsc, '-p', join(project, 'tsconfig.json'), '--outDir', outDir, '--noEmitOnError'];
  const { code, output } = await run(process.execPath, args, { cwd: root });
  if (code !== 0) throw new Error(`${output}\nThe build failed.`);
}

async function replace(directory, built, old) {
  if (existsSync(directory)) await rename(directory, old);
  await rename(built, directory);
  await rm(old, { recursive: true, force: true });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  readArguments('Usage: npm run build\n\nBuilds src/ into dist/, and the typed client into packages/client/dist/.');
  await orSentence(build);
}
