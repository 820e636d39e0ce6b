// Starts the real processes that a benchmark runs against: the sandbox, gateways, Redis. Each handle stops its process.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../test/support/freePort.ts';

const dist = fileURLToPath(new URL('../dist/', import.meta.url));

/** The arguments of Node.js for the sandbox of the tests as a process. `options` as in `startSandbox`, with `taxpayers`, `latencyMs`. */
export function sandboxArguments(options) {
  const support = new URL('../test/support/', import.meta.url);
  const loader = ['--import', 'tsx'];
  return [...loader, fileURLToPath(new URL('sandboxProcess.ts', support)), JSON.stringify(options)];
}

/** @returns `control(method, ...args)` of the sandbox whose process printed `controlUrl` */
export function controlAt(controlUrl) {
  return async (method, ...args) => {
    const response = await fetch(`${controlUrl}/${method}`, { method: 'POST', body: JSON.stringify(args) });
    if (!response.ok) throw new Error(`The sandbox refused ${method}: ${await response.text()}`);
    return response.json();
  };
}

/** @returns the sandbox as its own process */
export async function startSandboxProcess(options) {
  const client = { clientId: 'sandbox-client', clientSecret: 'sandbox-secret-not-real' };
  const child = spawn(process.execPath, sandboxArguments({ ...client, ...options }));
  const ready = JSON.parse(await firstLine(child, (line) => line.includes('"url"')));
  return { ...ready, control: controlAt(ready.controlUrl), stop: () => end(child, 'SIGTERM') };
}

/** @returns a gateway as its own process, pointed at `sandbox`; `settings` are environment variables */
export async function startGatewayProcess(sandbox, settings = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-bench-'));
  const child = spawn(process.execPath, [join(dist, 'main.js')], {
    cwd: directory,
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: '0',
      HOST: '127.0.0.1',
      AUTH_MODE: 'disabled',
      UPSTREAM_BASE_URL: sandbox.url,
      UPSTREAM_CLIENT_ID: 'sandbox-client',
      UPSTREAM_CLIENT_SECRET: 'sandbox-secret-not-real',
      TOKEN_BUDGET_PER_HOUR: '0',
      RATE_LIMIT_PER_MINUTE: '0',
      ...settings,
    },
  });
  const ready = JSON.parse(await firstLine(child, (line) => line.includes('"msg":"ready"')));
  const url = new URL(ready.graphql);
  return {
    pid: child.pid,
    origin: `http://127.0.0.1:${url.port}`,
    stop: () => end(child, 'SIGTERM').finally(() => rmSync(directory, { recursive: true, force: true })),
    kill: () => end(child, 'SIGKILL').finally(() => rmSync(directory, { recursive: true, force: true })),
  };
}

/** @returns a Redis on a free loopback port; its data survives `restart`, in an append-only file */
export async function startRedisProcess() {
  const directory = mkdtempSync(join(tmpdir(), 'redis-bench-'));
  const port = await freePort();
  const start = async () => {
    const child = spawn('redis-server', [
      ...['--port', `${port}`, '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'yes'],
    ]);
    await firstLine(child, (line) => line.includes('Ready to accept connections'));
    return child;
  };
  let child = await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid,
    restart: async () => {
      await end(child, 'SIGKILL');
      child = await start();
    },
    stop: () => end(child, 'SIGKILL').finally(() => rmSync(directory, { recursive: true, force: true })),
  };
}

/** A directory of its own for an LMDB store. */
export function temporaryDirectory() {
  const directory = mkdtempSync(join(tmpdir(), 'store-bench-'));
  return { path: directory, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

async function firstLine(child, isMeant) {
  let text = '';
  return new Promise((resolve, reject) => {
    const look = (chunk) => {
      text += chunk;
      const line = text.split('\n').slice(0, -1).find(isMeant);
      if (line !== undefined) resolve(line);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('exit', (code) => reject(new Error(`A process ended with ${code} before it was ready: ${text}`)));
  });
}

async function end(child, signal) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill(signal);
  await gone;
}
