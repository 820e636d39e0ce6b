// Bundles the simulator and the classes it runs into one file, with or without a planted defect.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const artifacts = join(root, 'test-artifacts', 'simulation');

const options = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  logLevel: 'error',
};

/**
 * @param patch a planted defect: `{ name, file, find, replace }`; `find` must occur once in src/`file`
 */
export async function bundle(patch) {
  mkdirSync(artifacts, { recursive: true });
  const outfile = join(artifacts, `${patch?.name.replaceAll(/\W+/g, '-') ?? 'simulator'}-${process.pid}.mjs`);
  await build({
    ...options,
    entryPoints: [join(root, 'test', 'simulation', 'worker.ts')],
    outfile,
    plugins: patch ? [planting(patch)] : [],
  });
  return outfile;
}

/**
 * Bundles the classes of another commit of this repository, wired as that commit wires them, into one file.
 *
 * @throws when there is no such commit, or it has no simulator
 */
export async function bundleCommit(commit) {
  const git = (...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 1e9, stdio: 'pipe' }).trim();
  const hash = git('rev-parse', '--verify', '--short', `${commit}^{commit}`);
  const folder = join(artifacts, `commit-${hash}-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    git('archive', '--format=tar', `--output=${folder}/all.tar`, hash, 'src', 'test', 'tsconfig.json');
    execFileSync('tar', ['-xf', 'all.tar'], { cwd: folder });
    const entry = join(folder, 'version.ts');
    const wiring = './test/simulation/wireProcess.js';
    if (!existsSync(join(folder, wiring.replace(/js$/, 'ts')))) throw new Error(`Commit ${hash} has no ${wiring}`);
    writeFileSync(
      entry,
      `import { wireProcess } from '${wiring}';
       import { StoreError } from './src/stores/StoreError.js';
       export const version = { wireProcess, StoreError };`,
    );
    const outfile = `${folder}.mjs`;
    await build({ ...options, entryPoints: [entry], outfile });
    return outfile;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function planting({ file, find, replace, name }) {
  return {
    name: 'plant a defect',
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
        if (relative(join(root, 'src'), path).replaceAll('\\', '/') !== file) return undefined;
        const text = readFileSync(path, 'utf8');
        const found = text.split(find).length - 1;
        if (found !== 1) throw new Error(`“${name}”: what it replaces occurs ${found} times in src/${file}`);
        return { contents: text.replace(find, () => replace), loader: 'ts' };
      });
    },
  };
}
