import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const scratch = mkdtempSync(join(tmpdir(), 'supply-chain-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('Publishing', () => {
  it('pins actions by digest and images by version', () => {
    const workflows = ['ci', 'nightly', 'publish'].map((name) => read(`.github/workflows/${name}.yml`)).join('\n');
    const actions = [...workflows.matchAll(/uses: (.+)/g)].map(([, action]) => action);
    expect(actions.length).toBeGreaterThan(0);
    for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    const { services } = parse(read('compose.yaml')) as { services: Record<string, { image?: string }> };
    const images = [
      ...Object.values(services).flatMap(({ image }) => image ?? []),
      ...[...read('Dockerfile').matchAll(/^FROM (\S+)/gm)].map(([, image]) => image),
      ...parseAllDocuments(read('ops/kubernetes/base/deployment.yaml')).flatMap((document) =>
        [...String(document).matchAll(/image: (\S+)/g)].map(([, image]) => image),
      ),
    ];
    expect(images.length).toBeGreaterThan(4);
    for (const image of images) expect(image).toMatch(/:v?\d+\.\d+\.\d+(-[\w-]+)?$/);
  });
});

describe('What ships', () => {
  it.each(['.npmrc', 'examples/web/.npmrc'])('runs no script of a package when it is installed by %s', async (path) => {
    const folder = mkdtempSync(join(scratch, 'npmrc-'));
    const write = (name: string, content: object) => writeFileSync(join(folder, name), JSON.stringify(content));
    const local = { name: 'local', version: '1.0.0', scripts: { postinstall: 'touch ran' } };
    const own = { name: 'own', version: '1.0.0', dependencies: { local: 'file:local' } };
    const installed = { 'node_modules/local': { resolved: 'local', link: true } };
    mkdirSync(join(folder, 'local'));
    write('local/package.json', local);
    write('package.json', own);
    const packages = { '': own, local: { version: '1.0.0', hasInstallScript: true }, ...installed };
    write('package-lock.json', { ...own, lockfileVersion: 3, packages });
    cpSync(join(root, path), join(folder, '.npmrc'));
    // Not with the settings that npm test hands on.
    const env = { PATH: process.env['PATH'] };
    await promisify(execFile)('npm', ['ci', '--offline'], { cwd: folder, env });
    expect(readdirSync(join(folder, 'node_modules'))).toContain('local');
    expect(readdirSync(join(folder, 'local'))).toEqual(['package.json']);
  });
});

describe('Lock files', () => {
  it.each(locksIn(root))('%s names no registry and proves every package by its hash', (path) => {
    const { packages } = JSON.parse(readFileSync(join(root, path), 'utf8')) as {
      packages: Record<string, { resolved?: string; integrity?: string; link?: boolean; inBundle?: boolean }>;
    };
    const installed = Object.entries(packages).filter(([at, { link }]) => at.includes('node_modules/') && !link);
    expect(installed.length).toBeGreaterThan(0);
    for (const [at, { resolved, integrity, inBundle }] of installed) {
      if (resolved !== undefined || (!integrity && !inBundle)) throw new Error(`${at}: ${resolved ?? 'no integrity'}`);
    }
  });
});

/** Not of packages that are installed, which are a hundred thousand files and more. */
function locksIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return /^(node_modules|\.git|dist)$/.test(entry.name) ? [] : locksIn(path);
    return entry.name === 'package-lock.json' ? relative(root, path) : [];
  });
}
