// Starts the measured targets (the built gateway, the baselines) and what they need: the sandbox, an identity provider, a
// loader. Targets run as processes of their own on loopback, pinned to the last core where the system can do that.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startIdentityProvider } from '../test/support/identityProvider.ts';
import { controlAt, sandboxArguments, startRedisProcess } from './processes.js';
import { lmdbTransactions, redisCommands } from './storeCost.js';

const client = { clientId: 'bench-client', clientSecret: 'bench-secret-not-real' };
const cores = availableParallelism();
const canPin = cores > 1 && spawnSync('taskset', ['--version']).status === 0;
const helperCores = `0-${Math.max(0, cores - 2)}`;

/** Running children, which are killed when the benchmark exits, also by a failure. */
const children = new Set();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

export const pinning = canPin ? `targets on core ${cores - 1}, the rest elsewhere` : 'none';

/** The sandbox with taxpayers and jobs: `{ url, pid, control, taxpayerIds, jobs, stop }`. Its jobs never end. */
export async function startService({ taxpayers = 50 } = {}) {
  const child = launch(sandboxArguments({ ...client, taxpayers, jobDurationMs: 999_999_999 }));
  const { url, controlUrl, taxpayerIds } = await firstLine(child, (line) => line.startsWith('{') && JSON.parse(line));
  const control = controlAt(controlUrl);
  const owners = Array.from({ length: 100 }, (_, n) => taxpayerIds[n % 20]);
  const jobs = await Promise.all(
    owners.map(async (taxpayerId) => ({ taxpayerId, jobId: (await control('addJob', { taxpayerId })).jobId })),
  );
  return { url, pid: child.pid, control, taxpayerIds, jobs, stop: () => stop(child) };
}

/** An identity provider in this process, and the Authorization header of a caller who may see every taxpayer. */
export async function startIssuer() {
  const provider = await startIdentityProvider({ keys: ['ES256', 'RS256'] }); // the last one signs where none is named
  const scope = 'client-links:create taxpayers:read taxpayer-tokens:read refresh-jobs:read taxpayers:any';
  const token = await provider.token({ scope, sub: 'bench' }, { expiresIn: 36_000 });
  return { provider, authorization: `Bearer ${token}`, stop: () => provider.stop() };
}

/**
 * The gateway as it ships: the built entry with production settings, token verification, limits, metrics, logs and the default
 * store on disk. Only the rate limit and the token budget are raised, because the loader is a single caller.
 */
export async function startGateway({ service, issuer, env = {}, core = 'target', nodeFlags = [] }) {
  const directory = mkdtempSync(join(tmpdir(), 'taxpayer-gateway-bench-'));
  const child = launch([...nodeFlags, built('main.js')], {
    core,
    cwd: directory,
    env: {
      NODE_ENV: 'production',
      PORT: '0',
      HOST: '127.0.0.1',
      UPSTREAM_BASE_URL: service.url,
      UPSTREAM_CLIENT_ID: client.clientId,
      UPSTREAM_CLIENT_SECRET: client.clientSecret,
      AUTH_JWKS_URL: issuer.provider.jwksUrl,
      AUTH_ISSUER: issuer.provider.issuer,
      AUTH_AUDIENCE: issuer.provider.audience,
      RATE_LIMIT_PER_MINUTE: '100000000',
      TOKEN_BUDGET_PER_HOUR: '1000000',
      ...env,
    },
  });
  const ended = once(child, 'exit');
  const url = await firstLine(child, (line) => /"graphql":"([^"]+)"/.exec(line)?.[1]);
  const end = async () => {
    await stop(child);
    rmSync(directory, { recursive: true, force: true });
  };
  return {
    name: 'gateway',
    url: url.replace('localhost', '127.0.0.1'),
    pid: child.pid,
    directory,
    output: child.stdout,
    ended,
    /** The number of its store operations so far, see storeCost.js. */
    storeCount: () => lmdbTransactions(join(directory, '.taxpayer-gateway/cache')),
    stop: end,
  };
}

/** As {@link startGateway}, with a Redis of its own on the helper cores. */
export async function startGatewayOnRedis({ env, ...options }) {
  const redis = await startRedisProcess();
  keepToHelperCores(redis.pid);
  const commands = redisCommands(redis.url);
  const gateway = await startGateway({ ...options, env: { ...env, CACHE_URL: redis.url } });
  const stop = async () => {
    await gateway.stop();
    commands.stop();
    await redis.stop();
  };
  return { ...gateway, name: 'gatewayRedis', storeCount: commands.count, stop };
}

/** Starts one of the programs in `baselines/`. */
export async function startBaseline(name, { service, issuer }) {
  const { issuer: iss, audience, jwksUrl } = issuer.provider;
  const flags = { upstream: service.url, 'client-id': client.clientId, 'client-secret': client.clientSecret };
  const all = Object.entries({ ...flags, 'jwks-url': jwksUrl, issuer: iss, audience }).flatMap(([k, v]) => [
    `--${k}`,
    v,
  ]);
  const program = fileURLToPath(new URL(`baselines/${name}.js`, import.meta.url));
  const child = launch([program, ...all], {
    core: 'target',
    env: { NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'ignore'], // some write a line for each error
  });
  const { url } = await firstLine(child, (line) => line.startsWith('{') && JSON.parse(line));
  return { name, url, pid: child.pid, stop: () => stop(child) };
}

/** Sends load from a process of its own. `run(order)`: see `closedLoad` in load.js; with `perSecond`, `openLoad`. */
export function startLoader() {
  const { child, run, stop: end } = startWorker('load.js');
  let sent;
  return {
    async run({ requests, ...order }) {
      if (requests !== sent) child.send({ requests }); // once, because they may be megabytes
      sent = requests;
      return run(order);
    },
    stop: end,
  };
}

/** Holds connections open in a process of its own. `run(order)`: see streams.js. */
export function startStreams() {
  return startWorker('streams.js');
}

function startWorker(name) {
  const program = fileURLToPath(new URL(name, import.meta.url));
  const child = launch([program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const run = async (order) => {
    child.send(order);
    const [report] = await once(child, 'message');
    return report;
  };
  return { child, run, stop: () => stop(child) };
}

/** Pins a running process to the helper cores. */
export function keepToHelperCores(pid) {
  if (canPin) spawnSync('taskset', ['-a', '-c', '-p', helperCores, `${pid}`]);
}

function built(path) {
  return fileURLToPath(new URL(`../dist/${path}`, import.meta.url));
}

/** `core`: the cores to pin the process to. */
function launch(args, { core = 'helper', env = {}, cwd, stdio = ['ignore', 'pipe', 'inherit'] } = {}) {
  const list = { target: `${cores - 1}`, helper: helperCores, any: `0-${cores - 1}` }[core];
  const command = [...(canPin ? ['taskset', '-c', list] : []), process.execPath, ...args];
  const child = spawn(command[0], command.slice(1), { env: { PATH: process.env.PATH, ...env }, cwd, stdio });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** The first truthy result of `find` over the lines of output. Reads and drops the rest, so that the child never blocks. */
function firstLine(child, find) {
  return new Promise((resolve, reject) => {
    let text = '';
    let found = false;
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      if (found) return;
      text += chunk;
      for (const line of text.split('\n').slice(0, -1)) {
        const result = !found && find(line);
        if (!result) continue;
        found = true;
        resolve(result);
      }
    });
    child.once('exit', (code) => reject(new Error(`A process ended with ${code} before it was ready: ${text}`)));
  });
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}

/**
 * Runs `work` with a service, a token issuer and a loader. Stops them afterwards, and everything that was passed to `start`, in
 * reverse order.
 */
export async function inWorld(work) {
  const running = [];
  const start = async (starting) => {
    const thing = await starting;
    running.push(thing);
    return thing;
  };
  try {
    const service = await start(startService());
    const issuer = await start(startIssuer());
    const loader = await start(startLoader());
    await work({ service, issuer, loader }, start);
  } finally {
    for (const thing of running.reverse()) await thing.stop();
  }
}
