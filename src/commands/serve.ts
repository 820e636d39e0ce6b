import { loadConfig } from '../config/config.js';
import { createLogger, type Logger } from '../observability/log.js';
import { StandardOutput } from '../observability/StandardOutput.js';
import { startGateway } from '../server.js';
import { announce } from './startupScreen.js';

/** Serves as the environment says, until a signal. */
export async function serve(): Promise<void> {
  const config = loadConfig();
  const output = new StandardOutput();
  const log = createLogger(config.logLevel, output);
  endOnBugs(log);
  logConsole(log);
  const starting = startGateway(config, { logDestination: output });
  stopOnSignal(log, async () => (await starting).stop());
  announce(await starting, config, output);
}

/** What a library prints becomes a line of the log: its first line, without what it quotes, which may be confidential. */
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
 * The first signal drains; one more than a second later ends the process at once: npm passes Ctrl-C on, so that it arrives twice.
 * Called before the process listens: a signal without a handler kills the process, and with it the connections that it has
 * accepted.
 */
function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  let since: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    const elapsedMs = () => Math.round(performance.now() - (since ?? 0));
    if (since !== undefined) {
      if (elapsedMs() > 1000) process.exit(1);
      return;
    }
    since = performance.now();
    log.info({ signal }, 'draining');
    stop().then(
      () => {
        log.info({ ms: elapsedMs() }, 'stopped');
        process.exit(0);
      },
      () => process.exit(1),
    );
  };
  // All that Node.js would end the process by and that supervisors, terminals and process managers send.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const) process.on(signal, onSignal);
}
