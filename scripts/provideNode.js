// Node.js of other versions, from npm: packages that hold its program for one platform each. Kept in .build/node.

import { spawnSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runNpm } from './providePackages.js';
import { underLock } from './underLock.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const platform = process.platform === 'win32' ? 'win' : process.platform;
const family = process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';
const packageName = `${family}-${platform}-${process.arch}`;
const expected = 'expected a version from 20.19 on, such as 24 or 24.9.0';

/**
 * The folder of the program `node` of `version`, installed once: the newest of `24`, or exactly `24.9.0`. Throws one
 * sentence when the version is none, with what npm printed when npm could not install it.
 */
export async function provideNode(version = '') {
  const [, major, minor = Number.POSITIVE_INFINITY] = /^(\d+)(?:\.(\d+)(?:\.\d+)?)?$/.exec(version) ?? [];
  if (major === undefined || major < 20 || (major === '20' && minor < 19)) {
    throw new Error(`Which Node.js: ${expected} (found: ${version || 'none'})`);
  }
  if (version === process.versions.node) return dirname(process.execPath);
  const folder = join(root, '.build/node', version);
  const bin = join(folder, 'node_modules', packageName, 'bin');
  if (!runs(bin)) {
    await underLock(`${folder}.lock`, async () => {
      if (!runs(bin)) await install(version, folder);
    });
  }
  if (!runs(bin)) throw new Error(`Node.js ${version} of ${packageName} does not run on this machine`);
  return bin;
}

/** An environment in which `node`, and npm as well, are those of `bin`. */
export function withNode(bin) {
  return { ...process.env, PATH: [bin, process.env.PATH].filter(Boolean).join(delimiter) };
}

function runs(bin) {
  return spawnSync(join(bin, 'node'), ['--version'], { env: {} }).status === 0;
}

async function install(version, folder) {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n');
  const options = ['--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
  const { code, output } = await runNpm(['install', `${packageName}@${version}`, ...options], {
    cwd: folder,
    title: `Installing Node.js ${version} (${packageName}, about 50 MB to load), once…`,
  });
  if (code === 0) return;
  const isUnknown = /\bE(?:TARGET|404)\b/.test(output);
  throw new Error(
    isUnknown
      ? `npm has no ${packageName}@${version}: ${expected}`
      : `Node.js ${version} could not be installed: \`npm install ${packageName}@${version}\` failed.\n${output}`,
  );
}
