// Starts what a benchmark runs against, each as a process of its own on loopback: the sandbox, gateways, baselines, Redis.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { atEnd } from '../test/support/atEnd.ts';
import { startIdentityProvider } from '../test/support/identityProvider.ts';
import { startRedis as startTestRedis } from '../test/support/redis.ts';
import { scratch } from '../test/support/scratch.ts';
import { inParallel } from './inParallel.js';

const client = { clientId: 'bench-client', clientSecret: 'bench-secret-not-real' };
const cores = availableParallelism();
const canPin = cores > 1 && spawnSync('taskset', ['--version']).status === 0;
/** What is measured has a core of its own, where the system can do that. */
export const pinning = canPin ? `targets on core ${cores - 1}, the rest elsewhere` : 'none';

/** Runs `work(start)`. Whatever `start` is given is stopped afterwards, the last one first. */
export async function withStarted(work) {
  const started = [];
  const start = async (starting) => {
    const thing = await starting;
    started.push(thing);
    return thing;
  };
  try {
    return await work(start);
  } finally {
    for (const thing of started.reverse()) await thing.stop();
  }
}

/**
 * The sandbox of the tests as a process: `{ url, pid, control, taxpayerIds, jobs }`. Its jobs never end; they belong to the first twenty
 * of its taxpayers. `control(method, ...args)` calls a method of it.
 */
export async function startService({ taxpayers, jobs = 0, latencyMs = 0 }) {
  const program = fileURLToPath(new URL('../test/support/sandboxProcess.ts', import.meta.url));
  const options = JSON.stringify({ ...client, taxpayers, latencyMs });
  const child = launch(process.execPath, ['--import', 'tsx', program, options]);
  const { url, controlUrl, taxpayerIds } = await foundInOutput(
    child,
    (line) => line.startsWith('{') && JSON.parse(line),
  );
  const control = async (method, ...args) => {
    const response = await fetch(`${controlUrl}/${method}`, { method: 'POST', body: JSON.stringify(args) });
    if (!response.ok) throw new Error(`The sandbox refused ${method}: ${await response.text()}`);
    return response.json();
  };
  const service = { url, pid: child.pid, control, taxpayerIds, stop: () => endProcess(child, 'SIGTERM') };
  const owners = Array.from({ length: jobs }, (_, n) => taxpayerIds[n % 20]);
  return { ...service, jobs: await addJobs(service, owners) };
}

/** A job that never ends for each of `taxpayerIds`: `{ taxpayerId, jobId }`. */
export function addJobs(service, taxpayerIds) {
  return inParallel(taxpayerIds.length, 16, async (n) => {
    const taxpayerId = taxpayerIds[n];
    const { jobId } = await service.control('addJob', { taxpayerId, durationMs: 1e9 });
    return { taxpayerId, jobId };
  });
}

/** An identity provider in this process. `env` are the settings of a target that trusts it. */
export async function startIssuer() {
  const provider = await startIdentityProvider({ keys: ['ES256'] });
  const reading = 'taxpayers:read refresh-jobs:read';
  return {
    env: { AUTH_JWKS_URL: provider.jwksUrl, AUTH_ISSUER: provider.issuer, AUTH_AUDIENCE: provider.audience },
    /** The Authorization header of a caller who may read every taxpayer, unless `claims` say otherwise. */
    authorizationOf: async (sub, claims = { scope: `${reading} taxpayers:any` }) =>
      `Bearer ${await provider.token({ sub, ...claims }, { expiresIn: 36_000 })}`,
  };
}

/** The gateway as it ships: the built entry with production settings, and with `env`. */
export function startGateway(service, options) {
  return startTarget('gateway', '../dist/main.js', service, options);
}

/** One of the programs in `baselines/`, which read the same settings as the gateway. */
export function startBaseline(name, service, options) {
  return startTarget(name, `baselines/${name}.js`, service, options);
}

async function startTarget(name, program, service, { env, isPinned, nodeFlags = [] }) {
  const child = launch(process.execPath, [...nodeFlags, fileURLToPath(new URL(program, import.meta.url))], {
    isPinned,
    cwd: scratch(),
    env: {
      NODE_ENV: 'production',
      PORT: '0',
      HOST: '127.0.0.1',
      UPSTREAM_BASE_URL: service.url,
      UPSTREAM_CLIENT_ID: client.clientId,
      UPSTREAM_CLIENT_SECRET: client.clientSecret,
      ...env,
    },
  });
  const url = await foundInOutput(child, (line) => /"graphql":"([^"]+)"/.exec(line)?.[1]);
  return {
    name,
    url: `http://127.0.0.1:${new URL(url).port}/graphql`,
    pid: child.pid,
    output: child.stdout,
    hasEnded: () => hasEnded(child),
    stop: () => endProcess(child, 'SIGTERM'),
    kill: () => endProcess(child),
  };
}

/** A Redis; its data survives a restart, in an append-only file. */
export async function startRedis() {
  const redis = await startTestRedis({ args: ['--appendonly', 'yes'] });
  return { ...redis, stop: redis.kill };
}

/** Leaves the last core to what is measured: for this process, and for what it starts later that is not pinned itself. */
export function keepToOtherCores() {
  if (canPin) spawnSync('taskset', ['-a', '-c', '-p', `0-${cores - 2}`, `${process.pid}`]);
}

function launch(command, args, { isPinned, env, cwd } = {}) {
  const pin = canPin && isPinned ? ['taskset', '-c', `${cores - 1}`] : [];
  const [program, ...rest] = [...pin, command, ...args];
  const stdio = ['ignore', 'pipe', 'inherit'];
  const child = spawn(program, rest, { env: { PATH: process.env.PATH, ...env }, cwd, stdio });
  atEnd(() => child.kill('SIGKILL')); // also after a failure
  return child;
}

/** Resolves when the process is gone. */
async function endProcess(child, signal = 'SIGKILL') {
  if (hasEnded(child)) return;
  const gone = once(child, 'exit');
  child.kill(signal);
  await gone;
}

function hasEnded({ exitCode, signalCode }) {
  return exitCode !== null || signalCode !== null;
}

/** The first truthy result of `find` over the lines of output. Reads and drops the rest, so that the child never blocks. */
function foundInOutput(child, find) {
  return new Promise((resolve, reject) => {
    const lines = createInterface({ input: child.stdout });
    let last = '';
    lines.on('line', (line) => {
      last = line;
      const found = find(line);
      if (!found) return;
      lines.close();
      child.stdout.resume();
      resolve(found);
    });
    child.once('exit', (code) => reject(new Error(`A process ended with ${code} before it was ready: ${last}`)));
  });
}
