import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { grafbase, grafbaseConfig, grafbaseVariables } from '../../examples/supergraph/grafbase/grafbase.js';
import { providePackages } from '../../scripts/providePackages.js';
import { freePort, until } from './redis.js';

interface Addresses {
  readonly taxpayersUrl: string;
  readonly casesUrl: string;
}

/** Grafbase as a process of its own, with the packages and the configuration of the example. */
export async function startGrafbase(addresses: Addresses, env: Readonly<Record<string, string>> = {}) {
  await providePackages('examples/supergraph/grafbase');
  const home = await mkdtemp(join(tmpdir(), 'grafbase-'));
  const port = await freePort();
  const child = spawn(grafbase, ['--home', home, 'dev', '-c', grafbaseConfig, '-p', `${port}`], {
    env: { ...process.env, ...grafbaseVariables(addresses as never), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const exited = once(child, 'exit');
  const origin = `http://127.0.0.1:${port}`;
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`Grafbase ended: ${output}`);
    const response = await fetch(`${origin}/health`).catch(() => undefined);
    return response?.ok === true;
  }, 60_000);
  return {
    origin,
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** The supergraph as Grafbase's composer prints it. */
export async function composeWithGrafbase(addresses: Addresses): Promise<string> {
  await providePackages('examples/supergraph/grafbase');
  const env = { ...process.env, ...grafbaseVariables(addresses as never) };
  const { stdout } = await promisify(execFile)(grafbase, ['compose', '-c', grafbaseConfig], { env });
  return stdout;
}
