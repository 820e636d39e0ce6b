import { resolve } from 'node:path';
import { freePort } from '../../support/freePort.js';
import { run } from '../../support/run.js';
import { scratch } from '../../support/scratch.js';
import { startRouter } from './startRouter.js';

interface Addresses {
  readonly taxpayersUrl: string;
  readonly casesUrl: string;
}

const here = (path: string) => resolve(import.meta.dirname, path);
/** The router's program, for Linux on x64. */
const grafbase = here('../node_modules/@grafbase/cli-x86_64-unknown-linux-musl/grafbase');
const config = here('../../../examples/supergraph/grafbase/grafbase.toml');

/** The variables of the configuration. */
const variables = ({ taxpayersUrl, casesUrl }: Addresses, secret = '') => ({
  TAXPAYERS_URL: taxpayersUrl,
  CASES_URL: casesUrl,
  FEDERATION_SHARED_SECRET: secret,
});

/** Grafbase as a process of its own, with the configuration of the example. */
export async function startGrafbase(addresses: Addresses, secret: string) {
  const port = await freePort();
  return startRouter({
    command: grafbase,
    args: ['--home', scratch(), 'dev', '-c', config, '-p', `${port}`],
    env: variables(addresses, secret),
    port,
    healthPath: '/health',
  });
}

/** The supergraph as Grafbase's composer prints it. */
export async function composeWithGrafbase(addresses: Addresses): Promise<string> {
  const env = { ...process.env, ...variables(addresses) };
  return (await run(grafbase, ['compose', '-c', config], { env })).stdout;
}
