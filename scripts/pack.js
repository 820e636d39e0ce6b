// What a release is made of (npm run release:pack). The same commit gives the same bytes.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from './build.js';
import { orSentence } from './orSentence.js';
import { readArguments } from './readArguments.js';
import { writeSbom } from './sbom.js';

const help = `Usage: npm run release:pack -- [--tag <tag>]

Packs both packages and their bill of materials into release/. With --tag v1.2.3 it fails unless that is the version of both.`;

const root = fileURLToPath(new URL('..', import.meta.url));
const release = join(root, 'release');
const { values } = readArguments(help, { options: { tag: { type: 'string' } } });

await orSentence(async () => {
  const folders = ['.', 'packages/client'];
  for (const folder of folders) {
    const { name, version } = JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8'));
    if (values.tag !== undefined && values.tag !== `v${version}`) {
      throw new Error(`The tag is ${values.tag}, but ${name} has version ${version}: expected the tag v${version}.`);
    }
  }
  await build();
  await rm(release, { recursive: true, force: true });
  await mkdir(release);
  const files = [];
  for (const folder of folders) {
    const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', release];
    const { stdout } = await promisify(execFile)('npm', args, { cwd: join(root, folder) });
    files.push(JSON.parse(stdout)[0].filename);
  }
  files.push((await writeSbom()).replace('release/', ''));
  const lines = await Promise.all(files.map(async (file) => `${await sha256(join(release, file))}  ${file}\n`));
  await writeFile(join(release, 'SHA256SUMS'), lines.join(''));
  process.stdout.write(lines.join(''));
});

async function sha256(file) {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}
