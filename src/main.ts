#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { commandNames, isUsage, usageProblem } from './commands/Command.js';
import { ConfigError } from './config/ConfigError.js';
import { packageVersion } from './config/config.js';
import { listenProblem } from './process/listenProblem.js';

const help = `taxpayer-gateway: a GraphQL gateway in front of a taxpayer-authorization service

Usage: taxpayer-gateway                          starts the gateway
       taxpayer-gateway check                    tests the configuration and whether everything it names can be reached
       taxpayer-gateway inspect <taxpayerId>     shows what is stored about a taxpayer
       taxpayer-gateway forget <taxpayerId>      erases what is stored about a taxpayer, in the whole fleet
       taxpayer-gateway pseudonym <taxpayerId>   prints the hash that stands for a taxpayer in the log
       taxpayer-gateway [<command>] --help       shows this text, or the options of a command
       taxpayer-gateway --version                prints the version

Every command takes --json. Exit codes: 0 success, 1 a problem was found, 2 wrong arguments.

Without configuration it serves http://localhost:4000/graphql with an embedded sandbox of the service.
Settings are environment variables. The most important ones:

  PORT                port to listen on (default 4000)
  UPSTREAM_BASE_URL   URL of the real service; needs UPSTREAM_CLIENT_ID and UPSTREAM_CLIENT_SECRET
  AUTH_ISSUER         issuer of the callers' access tokens; needs AUTH_AUDIENCE
  CACHE_URL           store: file:<directory> (default), redis://<host> or memory:
  NODE_ENV            production turns introspection and explorers off

docs/configuration.md in this package lists all settings.
`;

// Newer Node.js caches compiled code for the next start. Kept beside the build: others may write to temporary directories.
(module as { enableCompileCache?(directory: string): unknown }).enableCompileCache?.(
  fileURLToPath(new URL('compiled', import.meta.url)),
);

// A signal must not open a debugger in a production process.
process.on('SIGUSR1', () => {});

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exit(isUsage(error) ? 2 : 1);
}

/** Loads only what is asked for: a gateway starts without the commands, and a command without the gateway. */
async function main([first, ...rest]: readonly string[]): Promise<void> {
  const command = commandNames.find((name) => name === first);
  if (command !== undefined) {
    const { runCommand } = await import('./commands/runCommand.js');
    process.exitCode = await runCommand(command, rest);
    return;
  }
  const { values } = parseArgs({
    options: { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' } },
  });
  if (values.help) process.stdout.write(help);
  else if (values.version) process.stdout.write(`${packageVersion()}\n`);
  else await (await import('./process/serve.js')).serve();
}

/** For operators: one plain line for each thing that is wrong, without a stack trace. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.join('\n');
  if (isUsage(error)) return `${usageProblem(error)}: see taxpayer-gateway --help`;
  return listenProblem(error, 'PORT') ?? (error as Error).message;
}
