// Bundles the simulator and the classes it runs into one file.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const artifacts = join(root, 'test-artifacts', 'simulation');

/** Returns the path of the file, which is the caller's to delete. */
export async function bundle() {
  mkdirSync(artifacts, { recursive: true });
  const outfile = join(artifacts, `simulator-${process.pid}.mjs`);
  await build({
    entryPoints: [join(root, 'test', 'simulation', 'worker.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
  });
  return outfile;
}
