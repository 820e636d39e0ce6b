// Builds src/ into dist/. Run as a command it always builds; `ensureBuilt` builds only when dist/ is missing or stale.
//
// Several processes may start at once in one checkout (npm start beside npm test), so a build happens under a lock, in a
// directory of its own, and reaches dist/ by a rename: nobody ever imports half of one.

import { existsSync } from 'node:fs';
import { cp, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleMain } from './bundle.js';
import { run } from './run.js';
import { underLock } from './underLock.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const src = join(root, 'src');
const client = join(root, 'packages/client');
const dist = join(root, 'dist');
const entry = join(dist, 'main.js');
const scratch = join(root, '.build');
const lock = join(scratch, 'lock');
/** What a source deleted while we look counts as: changed just now. */
const gone = { mtimeMs: Number.POSITIVE_INFINITY };

/** The compiler refused the sources; `output` is what it printed. */
export class BuildError extends Error {
  constructor(output) {
    super('the build failed');
    this.output = output;
  }
}

/** Builds when dist/ is missing or older than a source; waits when another process is building. Throws `BuildError`. */
export async function ensureBuilt() {
  if (!existsSync(lock) && (await isFresh())) return;
  await underLock(lock, async () => {
    if (!(await isFresh())) await buildNow();
  });
}

/** Builds whether or not it is needed. Throws `BuildError`. */
export function build() {
  return underLock(lock, buildNow);
}

/** Runs `task` for a command: a `BuildError` becomes the compiler's own output and exit code 1. */
export async function orExplain(task) {
  try {
    await task();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`${error.output}\nThe build failed.\n`);
    process.exit(1);
  }
}

async function isFresh() {
  const built = await stat(entry).catch(() => undefined);
  if (!built) return false;
  // A directory's own time counts too: it is what changes when a source is deleted or renamed.
  const inputs = [join(root, 'tsconfig.json'), join(client, 'tsconfig.json')];
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
  const old = join(scratch, 'old');
  process.stderr.write('Building…');
  try {
    for (const left of [out, old]) await rm(left, { recursive: true, force: true });
    // The typed client is a package of its own, and a part of this one.
    await Promise.all([compile(root, out), compile(client, join(out, 'client'))]);
    await cp(src, out, { recursive: true, filter: (path) => !path.endsWith('.ts') });
    await bundleMain(out);
    // Dated by the start of the build, so that a source saved meanwhile makes this build stale.
    const entryBuilt = join(out, 'main.js');
    if (existsSync(entryBuilt)) await utimes(entryBuilt, startedAt, startedAt);
    if (existsSync(dist)) await rename(dist, old);
    await rename(out, dist);
    await rm(join(client, 'dist'), { recursive: true, force: true });
    await cp(join(dist, 'client'), join(client, 'dist'), { recursive: true });
    process.stderr.write(` done in ${((Date.now() - startedAt.getTime()) / 1000).toFixed(1)} s\n`);
  } catch (error) {
    process.stderr.write('\n');
    throw error;
  } finally {
    await rm(out, { recursive: true, force: true });
    await rm(old, { recursive: true, force: true });
  }
}

/** Incremental compilation is off: it would leave out files it believes are in dist/ already. */
async function compile(project, outDir) {
  const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')));
  const options = ['--outDir', outDir, '--noEmitOnError', '--incremental', 'false', '--tsBuildInfoFile', 'null'];
  const args = [tsc, '-p', join(project, 'tsconfig.json'), ...options];
  const { code, output } = await run(process.execPath, args, { cwd: root });
  if (code !== 0) throw new BuildError(output);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await orExplain(build);
