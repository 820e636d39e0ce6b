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
const github = read('.github/workflows/publish.yml');
const scratch = mkdtempSync(join(tmpdir(), 'supply-chain-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('Publishing', () => {
  const commandsOf = (job: { steps: { run?: string }[] }) => job.steps.flatMap(({ run }) => run?.trim() ?? []);

  it('happens from a tag, after all tests, and with no right but to prove who publishes', () => {
    const { on, permissions, jobs } = parse(github);
    expect([on, permissions]).toEqual([{ push: { tags: ['v*'] } }, {}]);
    expect(commandsOf(jobs.pack)).toContain('.ci/run');
  });

  it('gives the right to publish to a job that runs no code of this repository or of a package', () => {
    const { jobs } = parse(github);
    expect(jobs.pack).toMatchObject({ permissions: { contents: 'read' } });
    expect(jobs.publish).toMatchObject({ needs: 'pack', environment: 'npm', permissions: { 'id-token': 'write' } });
    expect(Object.keys(jobs.publish.permissions)).toEqual(['id-token']);
    expect(github.slice(github.indexOf('  publish:\n'))).not.toContain('actions/checkout');
    expect(commandsOf(jobs.publish)).toEqual([expect.stringMatching(/npm publish .* --provenance/)]);
  });

  it('leaves out what is published already, and ends where a publication fails', async () => {
    const folder = join(scratch, 'publish');
    mkdirSync(join(folder, 'release'), { recursive: true });
    for (const name of ['gateway', 'gateway-client', 'other'])
      writeFileSync(join(folder, `release/${name}-1.2.3-rc.1.tgz`), '');
    // Stands for npm and a registry: knows the first package, takes the second, refuses the third.
    const npm = `#!/bin/sh
echo "$@" >>calls
case "$1 $2" in "view gateway@1.2.3-rc.1") echo 1.2.3-rc.1 ;; view*) exit 1 ;; *other*) exit 7 ;; esac
`;
    writeFileSync(join(folder, 'npm'), npm, { mode: 0o755 });
    const [script = ''] = commandsOf(parse(github).jobs.publish);
    const env = { PATH: `${folder}:${process.env['PATH']}`, GITHUB_REF_NAME: 'v1.2.3-rc.1' };
    const publishing = promisify(execFile)('bash', ['-e', '-c', script], { cwd: folder, env });
    await expect(publishing).rejects.toMatchObject({ code: 7 });
    expect(readFileSync(join(folder, 'calls'), 'utf8').trimEnd().split('\n')).toEqual([
      'view gateway@1.2.3-rc.1 version',
      'view gateway-client@1.2.3-rc.1 version',
      'publish ./release/gateway-client-1.2.3-rc.1.tgz --provenance --access public',
      'view other@1.2.3-rc.1 version',
      'publish ./release/other-1.2.3-rc.1.tgz --provenance --access public',
    ]);
  });

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

  it('runs none in the image and in the other folders either', () => {
    expect(read('Dockerfile')).toMatch(/^COPY .*\.npmrc/m);
    for (const path of ['package.json', 'CONTRIBUTING.md']) expect(read(path)).toContain('--ignore-scripts');
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
