import { type Config, loadConfig, packageVersion } from '../config/config.js';
import { createLogger, type Logger } from '../observability/log.js';
import { StandardOutput } from '../observability/StandardOutput.js';
import { inUrl } from '../process/hosts.js';
import { type Gateway, startGateway } from '../server.js';
import { shownStore } from '../stores/openStore.js';

/** Serves as the environment says, until a signal. */
export async function serve(): Promise<void> {
  const config = loadConfig();
  const output = new StandardOutput();
  const log = createLogger(config.LOG_LEVEL, output);
  endOnBugs(log);
  logConsole(log);
  const starting = startGateway(config, output);
  stopOnSignal(log, async () => (await starting).stop());
  announce(await starting, config, log, output);
}

/** Logs the first line of what a library prints, without the parts in quotes, which may be confidential. */
function logConsole(log: Logger): void {
  const warn = (...parts: unknown[]) => {
    const text = parts.filter((part) => typeof part === 'string').join(' ');
    const [printed = ''] = text.replace(/(["'`]).*?\1/gs, '"…"').split('\n', 1);
    log.warn({ printed: printed.slice(0, 200) }, 'a library printed a warning');
  };
  Object.assign(console, { log: warn, info: warn, warn, error: warn });
}

/** An uncaught error or rejection ends the process with one log line; Node.js would print the error's message. */
function endOnBugs(log: Logger): void {
  process.on('uncaughtException', (err, origin) => {
    log.fatal({ err, origin }, 'the process ends: a bug of the gateway');
    process.exit(1);
  });
}

/**
 * The first signal drains. A further one ends the process at once, but only if it comes more than a second later: npm passes
 * Ctrl-C on, so that it arrives twice. Called before the process listens: a signal without a handler kills the process, and
 * with it the connections that it has accepted.
 */
function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  let firstAt: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    const now = performance.now();
    if (firstAt !== undefined) {
      if (now - firstAt > 1000) process.exit(1);
      return;
    }
    firstAt = now;
    log.info({ signal }, 'draining');
    // A rejection ends the process as a bug, unless the start has failed: `main.ts` has then ended it.
    void stop().then(() => {
      log.info({ ms: Math.round(performance.now() - now) }, 'stopped');
      process.exit(0);
    });
  };
  // The signals that supervisors, terminals and process managers send, and at which Node.js would end the process.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const) process.on(signal, onSignal);
}

/** Tells where everything is: a readable screen in a terminal, one JSON line anywhere else. */
function announce({ port, sandbox }: Gateway, config: Config, log: Logger, output: StandardOutput): void {
  const firstQuery = sandbox?.firstQuery ?? '{ __typename }';
  const origin = originOf(config, port);
  const summary = {
    graphql: `${origin}/graphql`,
    ...(config.INTROSPECTION && { apolloSandbox: `${origin}/`, graphiql: `${origin}/graphiql` }),
    health: `${origin}/health/ready`,
    metrics: config.METRICS_PORT === undefined ? `${origin}/metrics` : `port ${config.METRICS_PORT}`,
    service: config.UPSTREAM_BASE_URL || `embedded sandbox at ${sandbox?.url}`,
    store: shownStore(config.CACHE_URL),
    callers: config.issuers.map(({ issuer }) => issuer).join(', ') || `AUTH_MODE=${config.AUTH_MODE}`,
    version: `${packageVersion()} on Node.js ${process.versions.node}`,
  };
  for (const warning of config.warnings) log.warn(warning);
  if (output.isTerminal) output.write(screen([...Object.entries(summary), ...(sandbox?.demoRows ?? [])], firstQuery));
  else log.info({ ...summary, ...(sandbox && { firstQuery, demo: sandbox.demo }) }, 'ready');
}

function originOf({ HOST: host, tls }: Config, port: number): string {
  const isLocalhost = ['127.0.0.1', '::1'].includes(host);
  return `${tls ? 'https' : 'http'}://${isLocalhost ? 'localhost' : inUrl(host)}:${port}`;
}

function screen(rows: readonly (readonly [name: string, value: string])[], firstQuery: string): string {
  const lines = rows.map(([name, value]) => `  ${name.padEnd(42)}${value}`);
  return `\nTaxpayer gateway: ready\n\n${lines.join('\n')}\n\nFirst query:\n\n${firstQuery}\n\nCtrl-C ends it.\n\n`;
}
