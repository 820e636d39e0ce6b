import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort, until } from './redis.js';

const example = resolve(import.meta.dirname, '../../examples/supergraph');
const bin = join(example, 'hive/node_modules/@graphql-hive/gateway/dist/bin.js');
const config = join(example, 'gateway.config.js');

/** Hive Gateway as a process of its own, with the packages and the configuration of the example. */
export async function startHiveGateway(supergraphSdl: string, env: Readonly<Record<string, string>> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'hive-gateway-'));
  const file = join(directory, 'supergraph.graphql');
  await writeFile(file, supergraphSdl);
  const port = await freePort();
  const args = [bin, 'supergraph', file, '-c', config, '-h', '127.0.0.1', '-p', `${port}`];
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const exited = once(child, 'exit');
  const origin = `http://127.0.0.1:${port}`;
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`Hive Gateway ended: ${output}`);
    const response = await fetch(`${origin}/readiness`).catch(() => undefined);
    return response?.ok === true;
  }, 60_000);
  return {
    origin,
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
