// Puts the simulator and the classes it runs into one file, with a planted defect or without.

import { mkdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const artifacts = join(root, 'test-artifacts', 'simulation');

/**
 * @param patch what to replace in which file of src/: `{ name, file, find, replace }`; `find` must occur once
 * @param options the file of this folder to begin with, and the most entries that a cache has room for
 */
export async function bundle(patch, { entry = 'worker.ts', maxEntries = 100 } = {}) {
  mkdirSync(artifacts, { recursive: true });
  const outfile = join(artifacts, `${patch?.name.replaceAll(/\W+/g, '-') ?? 'simulator'}-${process.pid}.mjs`);
  await build({
    entryPoints: [join(root, 'test', 'simulation', entry)],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
    plugins: [smallCaches(maxEntries), ...(patch ? [planting(patch)] : [])],
  });
  return outfile;
}

/** Allocating room for 10,000 entries a dozen times per process takes longer than a whole seed; none has as many as 100. */
const smallCaches = (maxEntries) => ({
  name: 'small caches',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^lru-cache$/ }, ({ importer }) =>
      importer.includes('small-caches') ? undefined : { path: 'small-caches', namespace: 'small-caches' },
    );
    onLoad({ filter: /.*/, namespace: 'small-caches' }, () => ({
      contents: `import * as all from 'lru-cache';
        export class LRUCache extends all.LRUCache {
          constructor(options) { super({ ...options, max: Math.min(options.max, ${maxEntries}) }); }
        }`,
      resolveDir: root,
    }));
  },
});

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
