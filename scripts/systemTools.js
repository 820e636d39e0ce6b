// Finds the programs that tests need beside npm packages, and installs them where that is safe: Debian, as root.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Each tool: the names it goes by, the variable that overrides the search, and its Debian package. */
const tools = {
  redis: {
    title: 'redis-server',
    names: ['redis-server', 'valkey-server'],
    variable: 'REDIS_SERVER_PATH',
    package: 'redis-server',
  },
  prometheus: {
    title: 'Prometheus',
    names: ['prometheus'],
    variable: 'PROMETHEUS_PATH',
    package: 'prometheus',
  },
  promtool: {
    title: 'promtool',
    names: ['promtool'],
    variable: 'PROMTOOL_PATH',
    package: 'prometheus',
  },
  faketime: {
    title: 'faketime',
    names: ['faketime'],
    variable: 'FAKETIME_PATH',
    package: 'faketime',
  },
  redisCli: {
    title: 'redis-cli',
    names: ['redis-cli', 'valkey-cli'],
    variable: 'REDIS_CLI_PATH',
    package: 'redis-tools',
  },
  jq: { title: 'jq', names: ['jq'], variable: 'JQ_PATH', package: 'jq' },
  squid: { title: 'Squid', names: ['squid'], variable: 'SQUID_PATH', package: 'squid' },
  chromium: {
    title: 'Chromium',
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    variable: 'CHROMIUM_PATH',
    package: 'chromium',
  },
};

/** What npm run test:image needs. */
export const imageTools = {
  podman: { title: 'podman', names: ['podman'], variable: 'PODMAN_PATH', package: 'podman' },
  runc: { title: 'runc', names: ['runc'], variable: 'RUNC_PATH', package: 'runc' },
  mmdebstrap: { title: 'mmdebstrap', names: ['mmdebstrap'], variable: 'MMDEBSTRAP_PATH', package: 'mmdebstrap' },
};

/** Paths of all tools by variable name, installing what is missing. Throws one sentence that says what to install. */
export function provideTools(wanted = tools) {
  const missingTools = () => Object.values(wanted).filter((tool) => find(tool) === undefined);
  if (missingTools().length > 0 && canInstall()) install(packagesOf(missingTools()).split(' '));
  const missing = missingTools();
  if (missing.length > 0) {
    const titles = missing.map((tool) => tool.title).join(' and ');
    const variables = missing.map((tool) => tool.variable).join(' and ');
    throw new Error(
      `The tests need ${titles}: install on the PATH (in Debian: ${packagesOf(missing)}), or name the program in ${variables}.`,
    );
  }
  return Object.fromEntries(Object.values(wanted).map((tool) => [tool.variable, find(tool)]));
}

function packagesOf(missing) {
  return [...new Set(missing.map((tool) => tool.package))].join(' ');
}

function find({ names, variable }) {
  const override = process.env[variable];
  if (!override) return onPath(names);
  if (!isExecutable(override)) throw new Error(`${variable} names ${override}, which is no executable file.`);
  return override;
}

function onPath(names) {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), '/usr/sbin'];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function canInstall() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && onPath(['apt-get']) !== undefined;
}

function install(packages) {
  process.stderr.write(`Installing ${packages.join(' and ')} with apt-get…\n`);
  aptGet('update');
  aptGet('install', '--yes', '--no-install-recommends', ...packages);
}

/** A failure is shown and not thrown: what counts is whether the tool is there afterwards. */
function aptGet(...args) {
  const done = spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...args], {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (done.status !== 0) process.stderr.write(`apt-get ${args[0]} failed:\n${done.stderr ?? done.error}\n`);
}
