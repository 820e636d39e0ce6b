// Starts the real processes that a benchmark runs against: the sandbox, gateways, Redis. Each handle stops its process.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../scripts/freePort.js';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));

/** @returns the sandbox as its own process; `get` and `post` call its HTTP control interface */
export async function startSandboxProcess({ latencyMs = 0, taxpayers = 0, args = [] } = {}) {
  const child = spawn(process.execPath, [
    join(dist, 'sandbox/main.js'),
    ...['--http-control', '--no-log', '--latency-ms', `${latencyMs}`, '--taxpayers', `${taxpayers}`],
    ...args,
  ]);
  const ready = JSON.parse(await firstLine(child, (line) => line.includes('"url"')));
  const call = async (method, name, body) => {
    const response = await fetch(`${ready.controlUrl}/__sandbox/${name}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    if (!response.ok) throw new Error(`The sandbox refused ${name}: ${await response.text()}`);
    return response.json();
  };
  return {
    ...ready,
    get: (name) => call('GET', name),
    post: (name, body = {}) => call('POST', name, body),
    stop: () => end(child, 'SIGTERM'),
  };
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
    const child = spawn(process.env.REDIS_SERVER_PATH ?? 'redis-server', [
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
