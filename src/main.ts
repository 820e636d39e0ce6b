#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { withoutByteOrderMark } from './process/files.js';

// A signal must not open a debugger in a production process.
process.on('SIGUSR1', () => {});

const args = process.argv.slice(2);
try {
  // Before any other code is loaded, because libraries read variables as they load. A variable that is set already wins over
  // the file, unless it is empty, which counts as unset.
  if (process.env['npm_lifecycle_event'] === 'start' && existsSync('.env')) {
    const content = withoutByteOrderMark(readFileSync('.env', 'utf8'));
    for (const [name, value] of Object.entries(parseEnv(content))) process.env[name] ||= value;
  }
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
