import cluster from 'node:cluster';
import { type Config, loadConfig } from '../config/config.js';
import { createLogger, type Logger } from '../observability/log.js';
import { connectToMachine, MachineMetrics } from '../observability/MachineMetrics.js';
import { StandardOutput } from '../observability/StandardOutput.js';
import { credentialsOfSandbox, startEmbeddedSandbox, startGateway } from '../server.js';
import { prepareStore } from '../stores/openStore.js';
import { serveMetrics } from './metricsServer.js';
import { announce } from './startupScreen.js';
import { allWorkersClosed, assignedSandbox, primaryTurn, reportReady, Workers } from './Workers.js';

/** Serves as the configuration says, as one process, as the primary of several, or as one of its workers. */
export async function serve(config: Config = loadConfig()): Promise<void> {
  const output = new StandardOutput(config.workers > 1 ? 'shared' : 'alone');
  const log = createLogger(config.logLevel, output);
  endOnBugs(log);
  if (cluster.isWorker) return serveAsWorker(config, output);
  if (config.workers > 1) return serveWithWorkers(config, output, log);
  const starting = startGateway(config, { logDestination: output });
  stopOnSignal(async () => (await starting).stop());
  const gateway = await starting;
  announce(gateway, config, gateway.log, output);
}

async function serveAsWorker(config: Config, logDestination: StandardOutput): Promise<void> {
  const sandbox = await assignedSandbox();
  const starting = startGateway(config, {
    ...(sandbox && { upstream: credentialsOfSandbox(sandbox) }),
    joinMachine: connectToMachine,
    logDestination,
    siblings: { turn: primaryTurn, allClosed: allWorkersClosed },
  });
  stopOnSignal(async () => (await starting).stop());
  reportReady(await starting);
}

async function serveWithWorkers(config: Config, output: StandardOutput, log: Logger): Promise<void> {
  prepareStore(config.cache.url);
  const sandbox = config.upstream === 'embedded-sandbox' ? await startEmbeddedSandbox() : undefined;
  const metrics = new MachineMetrics();
  const metricsServer = await serveMetrics(config, metrics.text, log);
  const workers = new Workers({
    count: config.workers,
    sandbox,
    drainTimeoutMs: config.drainTimeoutMs,
    metrics,
    log,
  });
  const starting = workers.start();
  stopOnSignal(async () => {
    await workers.stop();
    await sandbox?.stop();
    await metricsServer?.drain(0);
  });
  announce({ ...(await starting), sandbox }, config, log, output);
}

/** An uncaught error or rejection ends the process with one log line; Node.js would print the error's message. */
function endOnBugs(log: Logger): void {
  process.on('uncaughtException', (err, origin) => {
    log.fatal({ err, origin }, 'the process ends: a bug of the gateway');
    process.exit(1);
  });
}

/**
 * The first signal drains; a second one ends the process at once. Called before the process listens: a signal without a
 * handler kills the process, and with it the connections that it has accepted.
 */
function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      // Workers ignore a second signal: Ctrl-C reaches them directly, and the primary's SIGTERM follows.
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
