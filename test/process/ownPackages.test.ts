import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'own-packages-'));
  write('package.json', { name: 'own', version: '1.0.0', dependencies: { local: 'file:local' } });
  write('local/package.json', { name: 'local', version: '1.0.0', bin: 'say.js' });
  writeFileSync(join(folder, 'local/say.js'), '#!/usr/bin/env node\nconsole.log("said", ...process.argv.slice(2))\n', {
    mode: 0o755,
  });
  lock('1.0.0');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('Packages that a command needs for itself', () => {
  it('are installed once, and again when the lock file changes', async () => {
    expect((await provide()).stderr).toMatch(/^Installing the packages of .* done in \d+ s\n$/);
    expect(await provide()).toEqual({ code: 0, stdout: '', stderr: '' });
    lock('1.0.1');
    expect((await provide()).stderr).toContain('Installing');
  }, 60_000);

  it('are installed once when two processes need them at the same time', async () => {
    const both = await Promise.all([provide(), provide()]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(both.filter(({ stderr }) => stderr.includes('Installing'))).toHaveLength(1);
  }, 60_000);

  it('bring their commands along', async () => {
    expect(await provide('local', 'hello')).toMatchObject({ code: 0, stdout: 'said hello\n' });
    expect((await provide('node', '-e', 'process.exit(7)')).code).toBe(7);
    expect(await provide('no-command')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'no-command cannot be started: ENOENT\n',
    });
  }, 60_000);

  it('hand signals to their command', async () => {
    const { child, ended } = start('node', '-e', 'setTimeout(() => {}, 60_000); console.log(process.pid)');
    const [pid] = await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect((await ended).code).toBe(1);
    expect(() => process.kill(Number(pid), 0)).toThrow('ESRCH');
  }, 60_000);

  it.each([[[]], [['--help']]])('are those of no folder for %j: the usage is printed', async (args) => {
    const stderr = expect.stringMatching(/^Usage: node scripts\/providePackages\.js <folder> /);
    const withoutNpm = '/nowhere';
    expect(await run(args, withoutNpm).ended).toEqual({ code: 2, stdout: '', stderr });
  });

  it('are asked for in one sentence where the registry cannot be reached, and not taken for installed', async () => {
    write('package.json', { name: 'own', version: '1.0.0', dependencies: { absent: '1.0.0' } });
    write('package-lock.json', {
      name: 'own',
      version: '1.0.0',
      lockfileVersion: 3,
      packages: {
        '': { name: 'own', version: '1.0.0', dependencies: { absent: '1.0.0' } },
        'node_modules/absent': { version: '1.0.0', integrity: `sha512-${'A'.repeat(86)}==` },
      },
    });
    for (const _ of ['first', 'second']) {
      const { code, stderr } = await provide();
      expect(code).toBe(1);
      expect(stderr).toContain('could not be installed: `npm ci` there needs the npm registry and failed.');
      expect(stderr).not.toMatch(/^\s+at /m);
    }
  }, 60_000);
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

function write(path: string, content: object): void {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), JSON.stringify(content));
}

function lock(version: string): void {
  const own = { name: 'own', version, dependencies: { local: 'file:local' } };
  write('package.json', own);
  const local = { version: '1.0.0', bin: { local: 'say.js' } };
  const packages = { '': own, local, 'node_modules/local': { resolved: 'local', link: true } };
  write('package-lock.json', { name: 'own', version, lockfileVersion: 3, packages });
}

const provide = (...command: string[]) => start(...command).ended;
const start = (...command: string[]) => run([relative(root, folder), ...command]);
function run(args: readonly string[], path = process.env['PATH']) {
  const env = { PATH: path, npm_config_registry: 'http://127.0.0.1:1', npm_config_fetch_retries: '0' };
  const child = spawn(process.execPath, ['scripts/providePackages.js', ...args], { cwd: root, env });
  const ended = Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]);
  return { child, ended: ended.then(([[code], stdout, stderr]) => ({ code, stdout, stderr })) };
}
