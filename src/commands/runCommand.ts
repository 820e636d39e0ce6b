import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { packageVersion } from '../config/config.js';
import { GatewayError } from '../errors/errors.js';
import { ConfigError, codeOf, listenProblem } from '../process/systemErrors.js';
import { type Command, type Finding, UsageError } from './Command.js';
import { check } from './check.js';
import { sandbox } from './sandbox.js';
import { forget, inspect, pseudonym } from './taxpayerCommands.js';

const commands: Readonly<Record<string, Command>> = { check, inspect, forget, pseudonym, sandbox };

const help = [
  'taxpayer-gateway: a GraphQL gateway in front of a taxpayer-authorization service',
  '',
  '  taxpayer-gateway',
  '      starts the gateway',
  '  taxpayer-gateway check',
  '      tests the configuration and all connections except to the trace collector; sends the service no credentials',
  '  taxpayer-gateway inspect <taxpayerId>',
  '      shows what is stored about a taxpayer: ages and cool-downs, never a token, a name or a status',
  '  taxpayer-gateway forget <taxpayerId>',
  '      erases what is stored about a taxpayer, and within 5 seconds what the processes of the fleet hold in memory.',
  '      If it fails, repeat it: not everything is erased. With CACHE_URL=file:<directory>, first stop the gateway',
  '  taxpayer-gateway pseudonym <taxpayerId>',
  '  taxpayer-gateway pseudonym --issuer <iss claim> <sub claim>',
  '      prints the hash that stands for a taxpayer or a caller in the log, then the hashes by earlier keys',
  '  taxpayer-gateway sandbox [options]',
  '      starts a stand-in for the service; the client id is sandbox-client, the secret sandbox-secret-not-real',
  '      --host <address>          default 127.0.0.1; 0.0.0.0 lets other machines and containers reach it',
  '      --port <number>           default 4010; 0 picks a free one',
  '',
  'If <taxpayerId> is -, it is read from standard input. With --json a command prints one JSON object.',
  'Exit codes: 0 success, 1 a problem was found, 2 wrong arguments.',
  '',
  'Without configuration the gateway serves http://localhost:4000/graphql with an embedded sandbox of the service.',
  'Settings are environment variables, which all commands but sandbox need too: PORT, UPSTREAM_BASE_URL, AUTH_ISSUER,',
  'CACHE_URL and those in docs/configuration.md of this package.',
];

const flag = { type: 'boolean' } as const;
const flags = { json: flag, help: { ...flag, short: 'h' }, version: { ...flag, short: 'v' } } as const;

/** Runs what the arguments ask for and returns the exit code: 0 all is well, 1 a problem was found, 2 wrong arguments. */
export async function runCommand(args: readonly string[]): Promise<number> {
  // Silenced, because the driver of Redis prints warnings, which do not belong in the output of a command.
  Object.assign(console, { warn: () => {}, error: () => {} });
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    process.stderr.write(`The standard output cannot be written to (${code})\n`);
    process.exit(1);
  });
  const json = args.includes('--json');
  try {
    const { ok = true, data, lines } = await run(args);
    process.stdout.write(json ? `${JSON.stringify({ ok, ...data })}\n` : `${lines.join('\n')}\n`);
    return ok ? 0 : 1;
  } catch (error) {
    const usage = usageProblem(error);
    const problems = usage === undefined ? problemsOf(error) : [usage, 'See taxpayer-gateway --help'];
    if (json) process.stdout.write(`${JSON.stringify({ ok: false, problems })}\n`);
    else process.stderr.write(`${problems.join('\n')}\n`);
    return usage === undefined ? 1 : 2;
  }
}

async function run([name = '', ...more]: readonly string[]): Promise<Finding> {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  const { takesArgument = false, options = [] } = command ?? {};
  const args = command ? more : [name, ...more];
  const ownOptions = Object.fromEntries(options.map((option) => [option, { type: 'string' }] as const));
  const { values, positionals } = parseArgs({ args, options: { ...flags, ...ownOptions }, allowPositionals: true });
  if (values.version) return shown([packageVersion()]);
  if (values.help || name === 'help') return shown(help);
  if (command === undefined) {
    const names = Object.keys(commands).join(', ');
    throw new UsageError(`The first argument is no command. Commands: ${names}; without one the gateway starts`);
  }
  if (positionals.length !== (takesArgument ? 1 : 0)) {
    throw new UsageError(`Expected ${takesArgument ? 'one id' : 'no argument'}, found ${positionals.length}`);
  }
  const [word = ''] = positionals;
  // `-` keeps an id out of the shell's history and the list of processes.
  const given = word === '-' ? (await text(process.stdin)).trim() : word;
  return command.run(given, values as Readonly<Record<string, string | undefined>>);
}

const shown = (lines: readonly string[]): Finding => ({ data: { text: lines.join('\n') }, lines });

/** One line for each thing that is wrong; an error that is not ours is a bug, and its message may quote anything. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.message.split('\n');
  return [
    listenProblem(error, '--port', '--host') ??
      `A bug of the gateway: ${error instanceof Error ? error.name : typeof error}`,
  ];
}

/** What was wrong with the call, without quoting any argument: it may be an id. Undefined for another error. */
function usageProblem(error: unknown): string | undefined {
  if (error instanceof UsageError) return error.message;
  if (error instanceof GatewayError) return 'The id is malformed';
  return codeOf(error)?.startsWith('ERR_PARSE_ARGS')
    ? 'There is no such option, or it lacks its value or takes none; an id that begins with - can be given after --'
    : undefined;
}
