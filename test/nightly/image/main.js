// npx tsx test/nightly/image/main.js: builds the image as the Dockerfile says and runs it as compose.yaml and compose.demo.yaml say, without a
// registry of images: the base image is made here, by mmdebstrap and with this machine's Node.js.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { parse } from 'yaml';
import { freePort } from '../../support/freePort.ts';
import { startPodman } from './podman.js';

const help = `Usage: npx tsx test/nightly/image/main.js

Builds the image as the Dockerfile says and runs it as compose.yaml says: on a read-only root, not as root, without
capabilities; asks for its health, and ends it by SIGTERM while a request is in flight. Then the gateway and the sandbox as
compose.demo.yaml says, beside a Redis of this machine. Prints a line for each check, and what cannot be tried without a registry of images. Exit code 1 when a check failed or could not be made.

Needs Debian and root; installs podman, runc and mmdebstrap. Keeps the base image in test-artifacts/image (300 MB).`;

const root = fileURLToPath(new URL('../../..', import.meta.url));
const image = 'localhost/taxpayer-gateway';
const container = 'taxpayer-gateway';
const sandbox = 'taxpayer-gateway-sandbox';
const read = (path) => readFileSync(join(root, path), 'utf8');
let failed = 0;

/** What is seen from inside the container. */
const titles = {
  user: 'runs as the user node',
  processOne: 'has Node.js as process 1',
  capabilities: 'has no capability',
  noNewPrivileges: 'can gain no privilege',
  app: 'cannot write its own code',
  root: 'cannot write the root',
  data: 'keeps its store in the volume',
};

const { values } = parseArgs({ options: { help: { type: 'boolean', short: 'h' } } });
if (values.help) console.log(help);
else await main();

async function main() {
  const podman = startPodman();
  const bases = [...new Set([...read('Dockerfile').matchAll(/^FROM (\S+)/gm)].map(([, base]) => base))];
  for (const base of bases) await timed(`base image ${base}, made here`, () => podman.provideBase(base));
  try {
    await timed('image, by the steps of the Dockerfile', () => build(podman));
    await tryImage(podman);
    await podman.run('rm', '--force', '--volumes', container);
    await tryDemo(podman);
  } finally {
    await podman.run('rm', '--force', '--ignore', '--volumes', '--time', '0', container, sandbox);
    await podman.run('image', 'rm', '--force', image).catch(() => undefined);
  }
  console.log(`
Not tried, and why:
- the base image as it is published (${bases.join(', ')}): there is no registry of images here. The stand-in is Debian
  with Node.js with the npm of this machine;
- health checks at their interval: a service manager starts them, and none needs to run here. The check itself was run;
- networks and limits of memory: the container used the network of this machine, so that no firewall rule is needed.`);
  console.log(failed === 0 ? '\nThe image does what it says.' : `\n${failed} failed.`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** The registry of packages is the one that npm is set up for here; packages that npm has loaded before are not loaded again. */
async function build(podman) {
  const npm = (key) => execFileSync('npm', ['config', 'get', key], { encoding: 'utf8' }).trim();
  const scratch = mkdtempSync(join(tmpdir(), 'image-'));
  try {
    const [settings, cache] = ['/usr/local/etc/npmrc', '/var/cache/npm']; // in the container
    writeFileSync(join(scratch, 'npmrc'), `registry=${npm('registry')}\ncache=${cache}\nupdate-notifier=false\n`);
    const mounts = [`${join(scratch, 'npmrc')}:${settings}:ro`, `${npm('cache')}:${cache}`];
    const options = ['--format', 'docker', '--isolation', 'chroot', '--network', 'host', '--pull=never', '--no-cache'];
    await podman.run('build', '--tag', image, ...options, ...mounts.flatMap((mount) => ['--volume', mount]), root);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function tryImage(podman) {
  const service = parse(read('compose.yaml')).services.gateway;
  const port = await freePort();
  const options = [
    ...['--network', 'host', '--env', `PORT=${port}`, '--read-only', '--read-only-tmpfs=false'],
    // Asked by hand; and limits that the machine lets us set.
    ...['--health-interval', 'disable', '--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096'],
    ...service.tmpfs.flatMap((path) => ['--tmpfs', path]),
    ...service.cap_drop.flatMap((name) => ['--cap-drop', name]),
    ...service.security_opt.flatMap((option) => ['--security-opt', option.replace(/:true$/, '')]),
  ];
  if (service.read_only !== true) throw new Error('compose.yaml: expected read_only: true for the gateway');
  await podman.run('run', '--detach', '--name', container, ...options, image);
  await check('becomes healthy, by its own health check', 'healthy', () => healthy(podman));
  const inside = JSON.parse(await podman.run('exec', container, 'node', '-e', `(${lookAround})()`));
  const expected = { user: 'node', processOne: 'node /app/dist/main.js', capabilities: '0', noNewPrivileges: '1' };
  for (const [name, value] of Object.entries({ ...expected, app: 'EROFS', root: 'EROFS', data: 'written' })) {
    await check(titles[name], value, () => inside[name]);
  }
  await check('brings no package of development', false, () => inside.hasTypescript);
  const token = '{ taxpayerToken(taxpayerId: "44444444-4444-4444-8444-444444444444") { status } }';
  await check('answers', { data: { taxpayerToken: { status: 'AUTHORIZED' } } }, () => ask(port, token));
  const job = 'taxpayerId: "44444444-4444-4444-8444-444444444444", jobId: "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"';
  const waiting = ask(port, `{ refreshJob(${job}, waitSeconds: 60) { status } }`);
  await ask(port, '{ __typename }'); // answered once the other is being waited for
  await podman.run('kill', '--signal', 'TERM', container);
  await check('answers at SIGTERM what is in flight', true, async () => (await waiting).data?.refreshJob !== undefined);
  await check('ends by SIGTERM with exit code 0', '0', async () => (await podman.run('wait', container)).trim());
  const bytes = Number(await podman.run('image', 'inspect', '--format', '{{.Size}}', image));
  console.log(`        ${Math.round(bytes / 1e6)} MB`);
}

/** What compose.demo.yaml starts, on the network and with a Redis of this machine. */
async function tryDemo(podman) {
  const { services } = parse(read('compose.demo.yaml'));
  const [port, sandboxPort, redisPort] = [await freePort(), await freePort(), await freePort()];
  const redis = spawn('redis-server', ['--port', redisPort, '--bind', '127.0.0.1', '--save', ''], { stdio: 'ignore' });
  const inDemo = ['--network', 'host', '--health-interval', 'disable', '--ulimit', 'nofile=4096:4096'];
  inDemo.push('--ulimit', 'nproc=4096:4096', '--detach');
  const command = services.sandbox.command.map((text) => (text === '4010' ? `${sandboxPort}` : text));
  const environment = {
    ...services.gateway.environment,
    PORT: port,
    UPSTREAM_BASE_URL: `http://127.0.0.1:${sandboxPort}`,
    CACHE_URL: `redis://127.0.0.1:${redisPort}`,
  };
  const variables = Object.entries(environment).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  try {
    const startedAt = performance.now();
    await podman.run('run', ...inDemo, '--name', sandbox, image, ...command);
    await podman.run('run', ...inDemo, '--name', container, ...variables, image);
    await check('of the demo becomes healthy', 'healthy', () => healthy(podman));
    const link = await ask(port, 'mutation { createClientLink(input: {}) { clientLink { url } } }');
    const { url } = link.data.createClientLink.clientLink;
    await check('of the demo leads to a hosted page of the sandbox', 200, async () => (await fetch(url)).status);
    console.log(`        ${((performance.now() - startedAt) / 1000).toFixed(1)} s from the image to the page`);
    const explorer = `http://127.0.0.1:${port}/graphiql`;
    await check('of the demo has an explorer', 200, async () => (await fetch(explorer)).status);
  } finally {
    redis.kill('SIGTERM');
  }
}

/** Runs inside the container. */
function lookAround() {
  const fs = require('node:fs');
  const status = fs.readFileSync('/proc/1/status', 'utf8');
  const of = (name) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1];
  const write = (path) => {
    try {
      fs.writeFileSync(path, 'x');
      return 'written';
    } catch ({ code }) {
      return code;
    }
  };
  const found = {
    user: of('Uid')
      .split('\t')
      .every((id) => id === '1000')
      ? require('node:os').userInfo().username
      : of('Uid'),
    processOne: fs.readFileSync('/proc/1/cmdline', 'utf8').split('\0').filter(Boolean).join(' '),
    capabilities: of('CapEff').replace(/^0*(?=.)/, ''),
    noNewPrivileges: of('NoNewPrivs'),
    app: write('/app/dist/main.js'),
    root: write('/written'),
    data: fs.readdirSync('/data').includes('.taxpayer-gateway') ? 'written' : fs.readdirSync('/data').join(),
    hasTypescript: fs.existsSync('/app/node_modules/typescript'),
  };
  console.log(JSON.stringify(found));
}

/** Asks for as long as the Dockerfile lets it start. */
async function healthy(podman) {
  for (let tries = 0; ; tries += 1) {
    try {
      await podman.run('healthcheck', 'run', container);
      return 'healthy';
    } catch (error) {
      if (tries === 20) return `${error.message}\n${await podman.run('logs', container)}`;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

async function ask(port, query) {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ query });
  return (await fetch(`http://127.0.0.1:${port}/graphql`, { method: 'POST', headers, body })).json();
}

async function check(title, expected, find) {
  const found = await find();
  const isAsExpected = isDeepStrictEqual(found, expected);
  if (!isAsExpected) failed += 1;
  console.log(`${isAsExpected ? 'ok    ' : 'FAILED'}  ${title}`);
  if (!isAsExpected) console.log(`        expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`);
}

async function timed(title, task) {
  const startedAt = performance.now();
  await task();
  console.log(`ok      ${title} (${((performance.now() - startedAt) / 1000).toFixed(0)} s)`);
}
