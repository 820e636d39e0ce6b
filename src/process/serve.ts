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
 * The first signal drains; a second one ends the process at once. Called before the process listens: a signal without a
 * handler kills the process, and with it the connections that it has accepted.
 */
function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  let stopping = false;
  // All that Node.js would end the process by and that supervisors, terminals and process managers send.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      const beganAt = performance.now();
      log.info({ signal }, 'draining');
      stop().then(
        () => {
          log.info({ ms: Math.round(performance.now() - beganAt) }, 'stopped');
          process.exit(0);
        },
        () => process.exit(1),
      );
    });
  }
}
