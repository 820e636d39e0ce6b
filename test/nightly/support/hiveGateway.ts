import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { freePort } from '../../support/freePort.js';
import { scratch } from '../../support/scratch.js';
import { startRouter } from './startRouter.js';

const example = resolve(import.meta.dirname, '../../../examples/supergraph');
const bin = join(example, 'node_modules/@graphql-hive/gateway/dist/bin.js');
const config = join(example, 'gateway.config.js');

/** Hive Gateway as a process of its own, with the packages and the configuration of the example. */
export async function startHiveGateway(supergraphSdl: string, env: Readonly<Record<string, string>>) {
  const file = join(scratch(), 'supergraph.graphql');
  await writeFile(file, supergraphSdl);
  const port = await freePort();
  return startRouter({
    command: process.execPath,
    args: [bin, 'supergraph', file, '-c', config, '-h', '127.0.0.1', '-p', `${port}`],
    env,
    port,
    healthPath: '/readiness',
  });
}
