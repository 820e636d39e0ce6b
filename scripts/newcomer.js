// What somebody who comes to this project types, waits for and installs (npm run newcomer): each path from an empty folder
// and with an empty cache of npm, on two versions of Node.js.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { machine, table, writeSection } from '../test/bench/report.js';
import { ensureBuilt } from './build.js';
import { freePort } from './freePort.js';
import { orSentence } from './orSentence.js';
import { provideNode, withNode } from './provideNode.js';
import { readArguments } from './readArguments.js';
import { killGroup } from './run.js';

const help = `Usage: npm run newcomer -- [options]

Follows each path from an empty folder: the gateway, the client package from its tarball, the supergraph behind Hive Gateway
and behind Grafbase. Prints what is typed, how long it takes and how much is installed. What is cloned is the last commit.

  --node <version>  on this Node.js, which comes from npm; may be repeated (default: 20 and 24)
  --only <path>     gateway, client, hive or grafbase; may be repeated (default: all)
  --write           writes the table into docs/newcomer.md`;

const root = fileURLToPath(new URL('..', import.meta.url));

/** What is typed, and the first answer in what the last command prints: undefined for as long as there is none. */
const paths = {
  gateway: { begin: clone, install: 'npm ci', start: 'npm start', firstAnswer: ofGateway },
  client: {
    begin: emptyProject,
    install: 'npm install taxpayer-gateway-client graphql',
    start: 'node watch.mjs',
    firstAnswer: ofProgram,
  },
  hive: { begin: clone, install: 'npm ci', start: 'npm run example:supergraph', firstAnswer: ofSupergraph },
  grafbase: {
    begin: clone,
    install: 'npm ci',
    start: 'npm run example:supergraph -- grafbase',
    firstAnswer: ofSupergraph,
  },
};

const several = { type: 'string', multiple: true };
const options = { node: several, only: several, write: { type: 'boolean' } };
const { values } = readArguments(help, { options }, ({ values }) => {
  const unknown = values.only?.find((name) => !(name in paths));
  if (unknown !== undefined)
    throw new Error(`--only expects one of ${Object.keys(paths).join(', ')} (found: ${unknown})`);
});

/** The commands that run and their ends, the latest last. */
const running = new Map();
let isInterrupted = false;
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    isInterrupted = true;
    for (const child of running.keys()) killGroup(child, 'SIGINT');
  });
}
await orSentence(() => main().finally(() => isInterrupted && process.exit(130)));

async function main() {
  const rows = [];
  for (const version of values.node ?? ['20', '24']) {
    const bin = await provideNode(version);
    for (const name of values.only ?? Object.keys(paths)) {
      rows.push(await follow(name, withNode(bin)));
      process.stderr.write(`${rows.at(-1).join(' | ')}\n`);
    }
  }
  const day = new Date().toISOString().slice(0, 10);
  const columns = ['what', 'Node.js', 'typed', 'installed', 's to install', 's to the first answer'];
  const printed = `Measured ${day} on ${machine()}.\n\n${table(columns, rows)}`;
  console.log(printed);
  if (values.write) writeSection('newcomer', printed, 'docs/newcomer.md');
}

async function follow(name, nodeEnv) {
  const { begin, install, start, firstAnswer } = paths[name];
  const folder = await mkdtemp(join(tmpdir(), 'newcomer-'));
  const app = join(folder, 'app');
  const ports = {
    PORT: '0',
    ROUTER_PORT: await freePort(),
    GATEWAY_PORT: await freePort(),
    CASES_PORT: await freePort(),
  };
  const env = { ...nodeEnv, ...ports, NODE_OPTIONS: '', npm_config_cache: join(folder, 'npm') };
  try {
    const version = (await run('node --version', { cwd: folder, env })).trim();
    process.stderr.write(`${name} on Node.js ${version}…\n`);
    const typed = await begin({ folder, app, env });
    const installSeconds = await seconds(() => run(typed?.install ?? install, { cwd: app, env }));
    const startSeconds = await seconds(() => runUntil(start, { cwd: app, env }, firstAnswer));
    const { packages, bytes } = await installed(app);
    const cells = [
      `${packages} packages, ${Math.round(bytes / 1e6)} MB`,
      installSeconds.toFixed(0),
      startSeconds.toFixed(1),
    ];
    return [name, version, `\`${install}\`, \`${start}\``, ...cells];
  } finally {
    for (const [child, ended] of [...running].reverse()) {
      killGroup(child, 'SIGINT');
      await ended;
    }
    await rm(folder, { recursive: true, force: true });
  }
}

async function clone({ app, folder, env }) {
  await run(`git clone --quiet --depth 1 "file://${root}" "${app}"`, { cwd: folder, env });
}

/** A project of nobody, the program of the client's README, and a gateway for it. */
async function emptyProject({ app, folder, env }) {
  await ensureBuilt();
  await run(`npm pack "${join(root, 'packages/client')}" --ignore-scripts --silent`, { cwd: folder, env });
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz'));
  const port = await runUntil(`node "${join(root, 'dist/main.js')}"`, { cwd: folder, env }, portOf);
  const readme = await readFile(join(root, 'packages/client/README.md'), 'utf8');
  const [, program] = /```js\n([\s\S]*?)```/.exec(readme);
  await mkdir(app);
  await writeFile(join(app, 'watch.mjs'), program.replace('localhost:4000', `localhost:${port}`));
  return { install: paths.client.install.replace('taxpayer-gateway-client', `"${join(folder, tarball)}"`) };
}

/** Its first line. */
function ofProgram(output) {
  return output.includes('\n') ? output : undefined;
}

function portOf(output) {
  return /"graphql":"http:\/\/[^"]*:(\d+)\/graphql"/.exec(output)?.[1];
}

/** The answer to the README's first query. */
async function ofGateway(output) {
  const port = portOf(output);
  if (port === undefined) return undefined;
  const [, query] = /```graphql\n([\s\S]*?)```/.exec(await readFile(join(root, 'README.md'), 'utf8'));
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ query });
  return await (await fetch(`http://localhost:${port}/graphql`, { method: 'POST', headers, body })).text();
}

/** What the command prints that the example ends its start with. */
async function ofSupergraph(output) {
  const [command] = /^curl [\s\S]*?'\n(?=\n|$)/m.exec(output) ?? [];
  return command && (await run(command, { cwd: root, env: process.env }));
}

/** Starts a command and waits for what `find` finds in its output. Throws when there is an error in that, or the command ends first. */
async function runUntil(command, options, find) {
  const { stdout } = launch(command, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  try {
    for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
      output += chunk;
      const found = await find(output);
      if (/"errors"/.test(found)) throw new Error(`${command} answered with an error: ${found}`);
      if (found) return found;
    }
    throw new Error(`${command} ended: ${output}`);
  } finally {
    stdout.resume(); // a pipe that is not read keeps it from ending
  }
}

async function run(command, options) {
  const child = launch(command, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), running.get(child)]);
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${stdout}${stderr}`);
  return stdout;
}

function launch(command, options) {
  if (isInterrupted) throw new Error('interrupted');
  const child = spawn('sh', ['-c', `exec ${command}`], { ...options, detached: true });
  running.set(
    child,
    once(child, 'close').finally(() => running.delete(child)),
  );
  return child;
}

/** The packages in a folder and their size, with those that a command installed in a folder of its own. */
async function installed(folder) {
  let packages = 0;
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || !path.includes('/node_modules/')) continue;
    bytes += (await stat(path)).size;
    if (/\/node_modules\/(@[^/]+\/)?[^/@.][^/]*\/package\.json$/.test(path)) packages += 1;
  }
  return { packages, bytes };
}

async function seconds(task) {
  const startedAt = performance.now();
  await task();
  return (performance.now() - startedAt) / 1000;
}
