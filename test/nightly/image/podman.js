// What the test of the image needs of podman, with a storage of its own: the stand-in of the base image is in no other.

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { needPrograms } from '../../support/programs.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const folder = join(root, 'test-artifacts/image');

/** Installs podman, runc and mmdebstrap where they are missing. Throws one sentence where it cannot. */
export function startPodman() {
  if (process.getuid?.() !== 0) throw new Error('The test of the image needs root: it makes a base image of Debian');
  needPrograms(['podman', 'runc', 'mmdebstrap']);
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')];
  // Neither needs systemd.
  storage.push('--runtime', 'runc', '--cgroup-manager', 'cgroupfs');
  return {
    /** What a command of podman that succeeds writes to its standard output. */
    run: (...args) => run('podman', [...storage, ...args]),
    /**
     * Makes the image that `FROM node:<version>-<suite>-slim` names: Debian with libstdc++, Node.js and the npm of this
     * machine, and the user `node`. Nothing when it is there.
     */
    async provideBase(image) {
      const [, version, suite] = /^node:([\d.]+)-(\w+)-slim$/.exec(image) ?? [];
      if (version === undefined) throw new Error(`FROM ${image}: expected node:<version>-<suite of Debian>-slim`);
      if (
        await this.run('image', 'exists', image).then(
          () => true,
          () => false,
        )
      )
        return;
      const node = process.execPath;
      mkdirSync(folder, { recursive: true });
      const tar = join(folder, 'base.tar');
      const sources = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'].filter(
        (file) => existsSync(file) && readFileSync(file, 'utf8').includes(suite),
      );
      const npm = (await run('npm', ['root', '--global'])).trim();
      const hooks = [
        'mkdir -p "$1/usr/local/bin" "$1/usr/local/lib/node_modules" "$1/home/node"',
        `cp "${node}" "$1/usr/local/bin/node"`,
        `cp -r "${npm}/npm" "$1/usr/local/lib/node_modules/npm"`,
        'ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"',
        'echo node:x:1000:1000::/home/node:/bin/bash >> "$1/etc/passwd"',
        'echo node:x:1000: >> "$1/etc/group"',
        'chown -R 1000:1000 "$1/home/node"',
      ];
      const options = ['--mode=root', '--variant=essential', '--include=libstdc++6'];
      await run('mmdebstrap', [
        ...options,
        ...hooks.map((hook) => `--customize-hook=${hook}`),
        ...[suite, tar, ...sources.slice(0, 1)],
      ]);
      await this.run('import', '--change', 'ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', tar, image);
      rmSync(tar);
    },
  };
}

async function run(command, args) {
  try {
    return (await promisify(execFile)(command, args, { cwd: root, maxBuffer: 1 << 26 })).stdout;
  } catch (error) {
    const output = `${error.stdout ?? ''}${error.stderr ?? ''}`.trimEnd();
    throw new Error(`${[command, ...args].join(' ').slice(0, 200)} failed:\n${output.slice(-3000)}`);
  }
}
