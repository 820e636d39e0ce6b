// The software bill of materials of what ships (npm run sbom). The same commit gives the same file.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { orSentence } from './orSentence.js';
import { readArguments } from './readArguments.js';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Writes the bill into release/ and returns its path from the repository's root. */
export async function writeSbom() {
  const { devDependencies: _, ...own } = await json('package.json');
  const { name, version } = own;
  const bill = await billOf(own, shippedOf(await json('package-lock.json')));
  // npm takes the name of the folder, and makes up a number and a time.
  Object.assign(bill.metadata.component, { name, version });
  bill.metadata.timestamp = await commitTime();
  delete bill.serialNumber;
  const hash = createHash('sha256').update(JSON.stringify(bill)).digest('hex');
  bill.serialNumber = `urn:uuid:${hash.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')}`;
  const file = `release/${name}.cdx.json`;
  await mkdir(`${root}release`, { recursive: true });
  await writeFile(root + file, `${JSON.stringify(bill, null, 2)}\n`);
  return file;
}

/** The lock file without what is for development alone: `npm sbom --omit=dev` leaves out what is for both as well. */
function shippedOf(lockFile) {
  const packages = Object.entries(lockFile.packages).filter(([, { dev }]) => !dev);
  const { devDependencies: _, ...own } = lockFile.packages[''];
  return { ...lockFile, packages: { ...Object.fromEntries(packages), '': own } };
}

async function billOf(own, lockFile) {
  const folder = await mkdtemp(join(tmpdir(), 'sbom-'));
  try {
    await writeFile(join(folder, 'package.json'), JSON.stringify(own));
    await writeFile(join(folder, 'package-lock.json'), JSON.stringify(lockFile));
    const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'];
    return JSON.parse(await output('npm', args, folder));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Outside a clone, the time by SOURCE_DATE_EPOCH (seconds), or now. */
async function commitTime() {
  const seconds =
    process.env.SOURCE_DATE_EPOCH ?? (await output('git', ['log', '-1', '--format=%ct']).catch(() => undefined));
  return new Date(seconds === undefined ? Date.now() : Number(seconds) * 1000).toISOString();
}

async function json(path) {
  return JSON.parse(await readFile(root + path, 'utf8'));
}

async function output(command, args, cwd = root) {
  return (await promisify(execFile)(command, args, { cwd, maxBuffer: 64 * 1024 * 1024 })).stdout;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  readArguments('Usage: npm run sbom\n\nWrites the bill of materials into release/, in CycloneDX.');
  await orSentence(async () => console.log(await writeSbom()));
}
