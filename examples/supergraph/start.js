// A supergraph on this machine (npm run example:supergraph): the gateway with its sandbox, a second subgraph, and a router
// in front of both: Hive Gateway. Ports: ROUTER_PORT (4000), GATEWAY_PORT (4001), CASES_PORT (4002).

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { demoCase, startCases } from './casesSubgraph.js';
import { composeSupergraph } from './composeSupergraph.js';

const { ROUTER_PORT = '4000', GATEWAY_PORT = '4001', CASES_PORT = '4002' } = process.env;
const gatewayOrigin = `http://127.0.0.1:${GATEWAY_PORT}`;
const routerOrigin = `http://127.0.0.1:${ROUTER_PORT}`;
const directory = await mkdtemp(join(tmpdir(), 'supergraph-'));
const children = [];
let stopping = false;

const cases = await startCases({ port: Number(CASES_PORT) }); // first: if its port is in use, no child is left behind
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => void stop(0));
start(process.execPath, [here('../../dist/main.js')], { PORT: GATEWAY_PORT });
await untilReady(`${gatewayOrigin}/health/ready`);
await startHive(`${gatewayOrigin}/graphql`, cases.url);

const query = `{ case(id: "${demoCase.id}") { title taxpayer { token { status } refreshJob(jobId: "${demoCase.jobId}") { status } } } }`;
console.log(`The supergraph answers on ${routerOrigin}/graphql. One query that crosses both subgraphs:

curl -s ${routerOrigin}/graphql -H 'content-type: application/json' \\
  -d '${JSON.stringify({ query })}'
`);

async function startHive(taxpayersUrl, casesUrl) {
  const supergraph = join(directory, 'supergraph.graphql');
  await writeFile(supergraph, composeSupergraph({ taxpayersUrl, casesUrl }));
  const hive = here('node_modules/@graphql-hive/gateway/dist/bin.js');
  const options = ['-c', here('gateway.config.js'), '-h', '127.0.0.1', '-p', ROUTER_PORT];
  start(process.execPath, [hive, 'supergraph', supergraph, ...options]);
  await untilReady(`${routerOrigin}/readiness`);
}

/** Hides what children print on standard output: the router's lines would hide the query above. */
function start(command, args, env = {}) {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  child.once('exit', (code) => {
    if (!stopping) console.error('If a port is in use, set ROUTER_PORT, GATEWAY_PORT or CASES_PORT');
    void stop(code ?? 1);
  });
  children.push(child);
}

async function untilReady(url) {
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
  await Promise.all([...gone, cases.stop()]);
  await rm(directory, { recursive: true, force: true });
  process.exit(code);
}

function here(path) {
  return fileURLToPath(new URL(path, import.meta.url));
}
