#!/usr/bin/env node
import { existsSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

// Newer Node.js caches compiled code for the next start. Kept beside the build: others may write to temporary directories.
(module as { enableCompileCache?(directory: string): unknown }).enableCompileCache?.(
  fileURLToPath(new URL('compiled', import.meta.url)),
);

// A signal must not open a debugger in a production process.
process.on('SIGUSR1', () => {});

// What the environment has takes precedence over the file.
if (process.env['npm_lifecycle_event'] === 'start' && existsSync('.env')) process.loadEnvFile();

const args = process.argv.slice(2);
try {
  // Loads only what is asked for: a gateway starts without the commands, and a command without the gateway.
  if (args.length === 0) await (await import('./commands/serve.js')).serve();
  else process.exitCode = await (await import('./commands/runCommand.js')).runCommand(args);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`); // plain lines for operators, without a stack trace
  process.exit(1);
}
