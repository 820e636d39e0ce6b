import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Programs that tests start, and the Debian package of each. */
const packages = {
  'redis-server': 'redis-server',
  'redis-cli': 'redis-tools',
  chromium: 'chromium',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  kubectl: 'kubernetes-client',
};

/** Makes sure that programs are on the PATH: on Debian as root it installs what is missing, elsewhere it throws what to install. */
export function needPrograms(names) {
  const missing = () => names.filter((name) => !isOnPath(name));
  const wanted = [...new Set(missing().map((name) => packages[name]))];
  if (wanted.length === 0) return;
  if (process.getuid?.() === 0 && existsSync('/etc/debian_version')) {
    console.error(`Installing ${wanted.join(' and ')}…`);
    aptGet('update');
    aptGet('install', '--yes', '--no-install-recommends', ...wanted);
  }
  if (missing().length === 0) return;
  throw new Error(`The tests need ${missing().join(', ')} on the PATH (Debian: apt-get install ${wanted.join(' ')}).`);
}

function isOnPath(name) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function aptGet(...args) {
  spawnSync('apt-get', ['-qq', '-o', 'DPkg::Lock::Timeout=120', ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 2, 2],
  });
}
