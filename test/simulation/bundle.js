// Bundles the simulator and the classes it runs into one file, with or without a planted defect.

import { mkdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const artifacts = join(root, 'test-artifacts', 'simulation');

/**
 * @param patch a planted defect: `{ name, file, find, replace }`; `find` must occur once in src/`file`
 */
export async function bundle(patch) {
  mkdirSync(artifacts, { recursive: true });
  const outfile = join(artifacts, `${patch?.name.replaceAll(/\W+/g, '-') ?? 'simulator'}-${process.pid}.mjs`);
  await build({
    entryPoints: [join(root, 'test', 'simulation', 'worker.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
    plugins: patch ? [planting(patch)] : [],
  });
  return outfile;
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
