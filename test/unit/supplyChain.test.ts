import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { read } from '../support/repository.js';

it('Publishing pins actions by digest and images by version', () => {
  const workflows = ['ci', 'nightly', 'publish'].map((name) => read(`.github/workflows/${name}.yml`)).join('\n');
  const actions = [...workflows.matchAll(/uses: (.+)/g)].map(([, action]) => action);
  expect(actions.length).toBeGreaterThan(0);
  for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  const { services } = parse(read('compose.yaml')) as { services: Record<string, { image?: string }> };
  const images = [
    ...Object.values(services).flatMap(({ image }) => image ?? []),
    ...[...read('ops/kubernetes/base/deployment.yaml').matchAll(/image: (\S+)/g)].map(([, image]) => image),
  ];
  expect(images.length).toBeGreaterThan(2);
  for (const image of images) expect(image).toMatch(/:v?\d+\.\d+\.\d+(-[\w-]+)?$/);
});

it.each(['.npmrc', 'examples/web/.npmrc'])(
  'What ships runs no script of a package when it is installed by %s',
  (path) => {
    expect(read(path).split('\n')).toContain('ignore-scripts=true');
  },
);

it.each(locksIn('.'))('The lock file %s names no registry and proves every package by its hash', (path) => {
  const { packages } = JSON.parse(read(path)) as {
    packages: Record<string, { resolved?: string; integrity?: string; link?: boolean; inBundle?: boolean }>;
  };
  const installed = Object.entries(packages).filter(([at, { link }]) => at.includes('node_modules/') && !link);
  expect(installed.length).toBeGreaterThan(0);
  for (const [at, { resolved, integrity, inBundle }] of installed) {
    if (resolved !== undefined || (!integrity && !inBundle)) throw new Error(`${at}: ${resolved ?? 'no integrity'}`);
  }
});

/** Not of packages that are installed, which are a hundred thousand files and more. */
function locksIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return /^(node_modules|\.git|dist)$/.test(entry.name) ? [] : locksIn(path);
    return entry.name === 'package-lock.json' ? path : [];
  });
}
