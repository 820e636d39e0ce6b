#!/usr/bin/env node
import cluster from 'node:cluster';
import { parseArgs } from 'node:util';
import { type Config, ConfigError, loadConfig, packageVersion } from './config/config.js';
import { createLogger } from './observability/log.js';
import { connectToMachine, MachineMetrics } from './observability/MachineMetrics.js';
import { StandardOutput } from './observability/StandardOutput.js';
import { serveMetrics } from './process/metricsServer.js';
import { announce } from './process/startupScreen.js';
import { allWorkersClosed, assignedSandbox, reportReady, Workers } from './process/workers.js';
import { credentialsOf, startEmbeddedSandbox, startGateway } from './server.js';
import { prepareStore } from './stores/openStore.js';

const help = `taxpayer-gateway: a GraphQL gateway in front of a taxpayer-authorization service

Usage: taxpayer-gateway [--help | --version]

Without configuration it serves http://localhost:4000/graphql with an embedded sandbox of the service.
Settings are environment variables; the ones to know first:

  PORT                port of every path (4000)
  UPSTREAM_BASE_URL   the real service, with UPSTREAM_CLIENT_ID and UPSTREAM_CLIENT_SECRET
  AUTH_JWKS_URL       the identity provider's keys, with AUTH_ISSUER and AUTH_AUDIENCE
  CACHE_URL           lmdb:<directory> (default), redis://<host> or memory:
  WORKERS             processes that share the port (1)

All of them: docs/configuration.md of this package.
`;

// A signal must not open a debugger in a production process.
process.on('SIGUSR1', () => {});

try {
  await main();
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exit(1);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' } },
  });
  if (values.help) process.stdout.write(help);
  else if (values.version) process.stdout.write(`${packageVersion()}\n`);
  else await serve(loadConfig());
}

async function serve(config: Config): Promise<void> {
  if (cluster.isWorker) return serveAsWorker(config);
  if (config.workers > 1) return serveWithWorkers(config);
  const output = new StandardOutput();
  const gateway = await startGateway(config, { logDestination: output });
  announce(gateway, config, gateway.log, output);
  stopOnSignal(() => gateway.stop());
}

async function serveAsWorker(config: Config): Promise<void> {
  const sandbox = await assignedSandbox();
  const gateway = await startGateway(config, {
    ...(sandbox && { upstream: credentialsOf(sandbox) }),
    joinMachine: connectToMachine,
    logDestination: new StandardOutput(),
    allClosed: allWorkersClosed,
  });
  reportReady(gateway);
  stopOnSignal(() => gateway.stop());
}

async function serveWithWorkers(config: Config): Promise<void> {
  prepareStore(config.cache.url);
  const output = new StandardOutput();
  const log = createLogger(config.logLevel, output);
  const sandbox = config.upstream === 'embedded-sandbox' ? await startEmbeddedSandbox() : undefined;
  const metrics = new MachineMetrics();
  const metricsServer = await serveMetrics(config, metrics.text);
  const workers = new Workers({ count: config.workers, sandbox, metrics, log });
  announce({ ...(await workers.start()), sandbox }, config, log, output);
  stopOnSignal(async () => {
    await workers.stop();
    await sandbox?.stop();
    await metricsServer?.drain(0);
  });
}

/** The first signal drains; a second one ends the process at once. */
function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      // Ctrl-C reaches the workers directly as well; the primary's SIGTERM to them is then their second signal.
      if (stopping && cluster.isPrimary) process.exit(1);
      if (stopping) return;
      stopping = true;
      stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
}

/** For operators: one plain line for each thing that is wrong, without a stack trace. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.join('\n');
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return 'PORT is in use by another process: expected a free one';
  if (code === 'EACCES') return 'PORT or HOST may not be used by this user';
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return 'HOST is not an address of this machine';
  return message;
}
