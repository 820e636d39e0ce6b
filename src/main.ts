#!/usr/bin/env node
import { existsSync } from 'node:fs';

// A signal must not open a debugger in a production process.
process.on('SIGUSR1', () => {});

const args = process.argv.slice(2);
try {
  // Before any other code is loaded, because libraries read variables as they load.
  if (process.env['npm_lifecycle_event'] === 'start' && existsSync('.env')) process.loadEnvFile();
  // Libraries that find this variable as they load print what they send, passwords included.
  delete process.env['DEBUG'];
  // Loads only the code that is needed: that of the gateway, or that of the commands.
  if (args.length === 0) {
    const { serve } = await import('./commands/serve.js');
    await serve();
  } else {
    const { runCommand } = await import('./commands/runCommand.js');
    process.exitCode = await runCommand(args);
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`); // plain lines for operators, without a stack trace
  process.exit(1);
}
