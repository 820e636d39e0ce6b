import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { providePackages } from '../../scripts/providePackages.js';

await providePackages('test/manifests');
const { cyclonedxProblems, githubProblems, gitlabProblems } = await import('../manifests/schemas.js');

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const github = read('.github/workflows/publish.yml');
const gitlab = read('.gitlab-ci.yml');
const scratch = mkdtempSync(join(tmpdir(), 'supply-chain-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('Publishing', () => {
  it("keeps GitHub's schema of workflows and GitLab's of pipelines", () => {
    expect(githubProblems(github)).toEqual([]);
    expect(githubProblems(github.replace('runs-on', 'runs'))).not.toEqual([]);
    expect(gitlabProblems(gitlab)).toEqual([]);
    expect(gitlabProblems(gitlab.replace('aud: sigstore', 'to: sigstore'))).not.toEqual([]);
  });

  const commandsOf = (job: { steps: { run?: string }[] }) => job.steps.flatMap(({ run }) => run?.trim() ?? []);

  it('happens from a tag, after all of CI, with provenance, and with no right but to prove who publishes', () => {
    const { on, permissions, jobs } = parse(github);
    expect([on, permissions]).toEqual([{ push: { tags: ['v*'] } }, {}]);
    const { workflow, pack, publish } = parse(gitlab);
    expect(workflow.rules).toEqual([{ if: '$CI_COMMIT_TAG =~ /^v/' }]);
    const [installs, ...packs] = commandsOf(jobs.pack);
    expect(installs).toMatch(/^sudo apt-get /);
    expect(packs[0]).toBe('.ci/run');
    const ofGitlab = (text: string) => text.replaceAll('GITHUB_REF_NAME', 'CI_COMMIT_TAG');
    expect(packs.map(ofGitlab)).toEqual(pack.script);
    expect(commandsOf(jobs.publish).map(ofGitlab)).toEqual(publish.script.map((text: string) => text.trim()));
  });

  it('gives the right to publish to a job that runs no code of this repository or of a package', () => {
    const { jobs } = parse(github);
    expect(jobs.pack).toMatchObject({ permissions: { contents: 'read' } });
    expect(jobs.publish).toMatchObject({ needs: 'pack', environment: 'npm', permissions: { 'id-token': 'write' } });
    expect(Object.keys(jobs.publish.permissions)).toEqual(['id-token']);
    expect(github.slice(github.indexOf('  publish:\n'))).not.toContain('actions/checkout');
    const { pack, publish } = parse(gitlab);
    expect([pack.environment, pack.id_tokens]).toEqual([undefined, undefined]);
    expect([publish.environment, Object.keys(publish.id_tokens)]).toEqual(['npm', ['SIGSTORE_ID_TOKEN']]);
    for (const script of [commandsOf(jobs.publish), publish.script]) {
      expect(script).toEqual([expect.stringMatching(/npm publish .* --provenance/)]);
    }
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
    const actions = [...github.matchAll(/uses: (.+)/g)].map(([, action]) => action);
    expect(actions.length).toBeGreaterThan(0);
    for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    const { services } = parse(read('compose.yaml')) as { services: Record<string, { image?: string }> };
    const images = [
      parse(gitlab).default.image,
      ...Object.values(services).flatMap(({ image }) => image ?? []),
      ...[...read('Dockerfile').matchAll(/^FROM (\S+)/gm)].map(([, image]) => image),
      ...parseAllDocuments(read('ops/kubernetes/deployment.yaml')).flatMap((document) =>
        [...String(document).matchAll(/image: (\S+)/g)].map(([, image]) => image),
      ),
    ];
    expect(images.length).toBeGreaterThan(5);
    for (const image of images) expect(image).toMatch(/:v?\d+\.\d+\.\d+(-[\w-]+)?$/);
  });
});

describe('What ships', () => {
  const licences = (lockFile: string) =>
    promisify(execFile)(process.execPath, ['scripts/licences.js', lockFile], { cwd: root }).then(
      () => '',
      ({ stderr }: { stderr: string }) => stderr,
    );

  it.each([
    ['GPL-3.0-only', false],
    ['(MIT AND LGPL-3.0-or-later)', false],
    [undefined, false],
    ['(GPL-2.0-only OR MIT)', true],
    ['(MIT AND BSD-3-Clause)', true],
  ])('under the licence %s is accepted: %s', async (license, isAccepted) => {
    const { packages } = JSON.parse(read('package-lock.json'));
    packages['node_modules/new-one'] = { version: '1.0.0', license };
    const lockFile = join(scratch, 'package-lock.json');
    writeFileSync(lockFile, JSON.stringify({ packages }));
    const problem = isAccepted ? '' : `new-one ships under ${license ?? 'none'}, which is not on the list`;
    expect((await licences(lockFile)).slice(0, problem.length || undefined)).toBe(problem);
    packages['node_modules/new-one'].dev = true;
    writeFileSync(lockFile, JSON.stringify({ packages }));
    expect(await licences(lockFile)).toBe('');
  });

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
    for (const path of ['scripts/providePackages.js', 'CONTRIBUTING.md'])
      expect(read(path)).toContain('--ignore-scripts');
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
    if (entry.isDirectory()) return /^(node_modules|\.git|\.build|dist)$/.test(entry.name) ? [] : locksIn(path);
    return entry.name === 'package-lock.json' ? relative(root, path) : [];
  });
}

describe('A release', () => {
  const folders = [join(scratch, 'one'), join(scratch, 'a second folder')];

  beforeAll(async () => {
    for (const folder of folders) {
      const copied = ['package.json', 'package-lock.json', '.npmrc', 'README.md', 'LICENSE', 'tsconfig.json', 'docs'];
      for (const path of [...copied, 'src', 'packages', 'scripts']) {
        cpSync(join(root, path), join(folder, path), { recursive: true });
      }
      symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
      const env = { ...process.env, NODE_OPTIONS: '', SOURCE_DATE_EPOCH: '1700000000' };
      await promisify(execFile)(process.execPath, ['scripts/pack.js'], { cwd: folder, env });
    }
  }, 240_000);

  it('is the same bytes from the same sources, wherever they are built', () => {
    const [one, other] = folders.map((folder) => readFileSync(join(folder, 'release/SHA256SUMS'), 'utf8'));
    expect(one?.trim().split('\n')).toHaveLength(3);
    expect(other).toBe(one);
  });

  it('has a bill of materials of what ships, and of nothing else, that keeps the schema of CycloneDX', async () => {
    const text = readFileSync(join(folders[0] ?? '', 'release/taxpayer-gateway.cdx.json'), 'utf8');
    expect(await cyclonedxProblems(text)).toEqual([]);
    expect(await cyclonedxProblems(text.replace('"purl"', '"url"'))).not.toEqual([]);
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { version: string; dev?: true; name?: string }>;
    };
    const shipped = Object.entries(packages).filter(([path, { dev }]) => path.includes('node_modules/') && !dev);
    const names = shipped.map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`);
    const listed = (JSON.parse(text).components as { name: string; version: string }[]).map(
      ({ name, version }) => `${name}@${version}`,
    );
    expect([...new Set(listed)].sort()).toEqual([...new Set(names)].sort());
  });

  it('is refused under a tag of another version', async () => {
    const packing = promisify(execFile)(process.execPath, ['scripts/pack.js', '--tag', 'v99.0.0'], { cwd: folders[0] });
    await expect(packing).rejects.toMatchObject({ stderr: expect.stringContaining('expected the tag v') });
  });
});
