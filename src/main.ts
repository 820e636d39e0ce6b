#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { ConfigError } from './config/ConfigError.js';
import { listenProblem } from './process/listenProblem.js';

// Newer Node.js caches compiled code for the next start. Kept beside the build: others may write to temporary directories.
(module as { enableCompileCache?(directory: string): unknown }).enableCompileCache?.(
  fileURLToPath(new URL('compiled', import.meta.url)),
);

// A signal must not open a debugger in a production process.
process.on('SIGUSR1', () => {});

const args = process.argv.slice(2);
try {
  // Loads only what is asked for: a gateway starts without the commands, and a command without the gateway.
  if (args.length === 0) await (await import('./process/serve.js')).serve();
  else process.exitCode = await (await import('./commands/runCommand.js')).runCommand(args);
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exit(1);
}

/** For operators: one plain line for each thing that is wrong, without a stack trace. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.join('\n');
  return listenProblem(error, 'PORT') ?? (error as Error).message;
}
