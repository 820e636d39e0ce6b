// A supergraph on this machine (npm run example:supergraph): the gateway with its sandbox, a second subgraph, and Hive
// Gateway as the router in front of both. Ports: ROUTER_PORT (4000), GATEWAY_PORT (4001), CASES_PORT (4002).

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { orSentence } from '../../scripts/committedFile.js';
import { providePackages } from '../../scripts/providePackages.js';
import { demoCase, startCases } from './casesSubgraph.js';
import { composeSupergraph } from './composeSupergraph.js';

await orSentence(() => providePackages('examples/supergraph/hive'));

const { ROUTER_PORT = '4000', GATEWAY_PORT = '4001', CASES_PORT = '4002' } = process.env;
const gatewayOrigin = `http://127.0.0.1:${GATEWAY_PORT}`;
const routerOrigin = `http://127.0.0.1:${ROUTER_PORT}`;
const directory = await mkdtemp(join(tmpdir(), 'supergraph-'));
const children = [];
let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => void stop(0));

start(here('../../scripts/start.js'), [], { PORT: GATEWAY_PORT });
const cases = await startCases({ port: Number(CASES_PORT) });
await answers(`${gatewayOrigin}/health/ready`);

const supergraph = join(directory, 'supergraph.graphql');
await writeFile(supergraph, composeSupergraph({ taxpayersUrl: `${gatewayOrigin}/graphql`, casesUrl: cases.url }));
start(here('hive/node_modules/@graphql-hive/gateway/dist/bin.js'), [
  'supergraph',
  supergraph,
  '-c',
  here('gateway.config.js'),
  '-h',
  '127.0.0.1',
  '-p',
  ROUTER_PORT,
]);
await answers(`${routerOrigin}/readiness`);

const query = `{ case(id: "${demoCase.id}") { title taxpayer { token { status } refreshJob(jobId: "${demoCase.jobId}") { status } } } }`;
console.log(`The supergraph answers on ${routerOrigin}/graphql. One query that crosses both subgraphs:

curl -s ${routerOrigin}/graphql -H 'content-type: application/json' \\
  -d '${JSON.stringify({ query })}'
`);

/** Quiet children: what the router prints about itself would hide the query above. */
function start(script, args, env = {}) {
  const child = spawn(process.execPath, [script, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  child.once('exit', (code) => stop(code ?? 1));
  children.push(child);
}

async function answers(url) {
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return;
    await wait(100);
  }
}

async function stop(code) {
  if (stopping) return;
  stopping = true;
  const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  const gone = running.map((child) => new Promise((resolve) => child.once('exit', resolve)));
  for (const child of running) child.kill('SIGTERM');
  await Promise.all([...gone, cases?.stop()]);
  await rm(directory, { recursive: true, force: true });
  process.exit(code);
}

function here(path) {
  return fileURLToPath(new URL(path, import.meta.url));
}
