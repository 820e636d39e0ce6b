import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { freePort } from '../../support/freePort.js';
import { scratch } from '../../support/scratch.js';
import { grafbase, grafbaseConfig, grafbaseVariables } from './grafbaseExample.js';
import { startRouter } from './startRouter.js';

interface Addresses {
  readonly taxpayersUrl: string;
  readonly casesUrl: string;
}

/** Grafbase as a process of its own, with the packages and the configuration of the example. */
export async function startGrafbase(addresses: Addresses, env: Readonly<Record<string, string>> = {}) {
  const port = await freePort();
  return startRouter({
    name: 'Grafbase',
    command: grafbase,
    args: ['--home', scratch(), 'dev', '-c', grafbaseConfig, '-p', `${port}`],
    env: { ...grafbaseVariables(addresses as never), ...env },
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
