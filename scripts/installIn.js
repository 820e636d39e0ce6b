import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';

/**
 * Installs the packages of a folder that has a lock file of its own, unless they are there as it says: `npm ci`, with what npm
 * prints. Such folders hold what one command needs and CI does not (one router alone is 500 MB). Throws when npm fails.
 */
export function installIn(folder) {
  const cwd = resolve(import.meta.dirname, '..', folder);
  const installed = statSync(join(cwd, 'node_modules/.package-lock.json'), { throwIfNoEntry: false });
  if (installed && installed.mtimeMs >= statSync(join(cwd, 'package-lock.json')).mtimeMs) return;
  console.error(`Installing the packages of ${folder}, once…`);
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd,
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw new Error(`The packages of ${folder} could not be installed: \`npm ci\` failed there.`);
}

if (process.argv[1] === import.meta.filename) for (const folder of process.argv.slice(2)) installIn(folder);
