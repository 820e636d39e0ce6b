import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../support/freePort.js';
import { grafbase, grafbaseConfig, grafbaseVariables } from './grafbaseExample.js';
import { startRouter } from './startRouter.js';

interface Addresses {
  readonly taxpayersUrl: string;
  readonly casesUrl: string;
}

/** Grafbase as a process of its own, with the packages and the configuration of the example. */
export async function startGrafbase(addresses: Addresses, env: Readonly<Record<string, string>> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'grafbase-'));
  const port = await freePort();
  return startRouter({
    name: 'Grafbase',
    command: grafbase,
    args: ['--home', directory, 'dev', '-c', grafbaseConfig, '-p', `${port}`],
    env: { ...grafbaseVariables(addresses as never), ...env },
    directory,
    port,
    healthPath: '/health',
  });
}

/** The supergraph as Grafbase's composer prints it. */
export async function composeWithGrafbase(addresses: Addresses): Promise<string> {
  const env = { ...process.env, ...grafbaseVariables(addresses as never) };
  const { stdout } = await promisify(execFile)(grafbase, ['compose', '-c', grafbaseConfig], { env });
  return stdout;
}
