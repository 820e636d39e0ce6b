import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { ConfigError } from '../config/ConfigError.js';
import { packageVersion } from '../config/config.js';
import { GatewayError } from '../errors/errors.js';
import { listenProblem } from '../process/listenProblem.js';
import { StoreError } from '../stores/StoreError.js';
import { type Command, type Finding, UsageError } from './Command.js';

const commands: Readonly<Record<string, () => Promise<Command>>> = {
  check: async () => (await import('./check.js')).check,
  inspect: async () => (await import('./inspect.js')).inspect,
  forget: async () => (await import('./forget.js')).forget,
  pseudonym: async () => (await import('./pseudonym.js')).pseudonym,
  sandbox: async () => (await import('./sandbox.js')).sandbox,
};

const flag = { type: 'boolean' } as const;
const flags = { json: flag, help: { ...flag, short: 'h' } } as const;

/** Runs what the arguments ask for and returns the exit code: 0 all is well, 1 a problem was found, 2 wrong arguments. */
export async function runCommand([name = '', ...args]: readonly string[]): Promise<number> {
  // The driver of Redis prints warnings, which are no findings of a command.
  Object.assign(console, { warn: () => {}, error: () => {} });
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  const json = args.includes('--json');
  try {
    const { ok, data, lines } = load ? await run(name, await load(), args) : await aboutProgram([name, ...args]);
    process.stdout.write(json ? `${JSON.stringify({ ok, ...data })}\n` : `${lines.join('\n')}\n`);
    return ok ? 0 : 1;
  } catch (error) {
    const isUsage = usageProblem(error) !== undefined;
    const problems = problemsOf(error);
    if (json) process.stdout.write(`${JSON.stringify({ ok: false, problems })}\n`);
    else process.stderr.write(`${problems.join('\n')}\n`);
    if (isUsage && !json) process.stderr.write(`See taxpayer-gateway ${load ? `${name} ` : ''}--help\n`);
    return isUsage ? 2 : 1;
  }
}

async function run(name: string, command: Command, args: string[]): Promise<Finding> {
  const { argument, options = {} } = command;
  const own = Object.fromEntries(Object.keys(options).map((option) => [option, { type: 'string' } as const]));
  const { values, positionals } = parseArgs({ args, options: { ...flags, ...own }, allowPositionals: true });
  if (values['help']) return shown(helpOf(name, command));
  if (positionals.length !== (argument ? 1 : 0)) {
    throw new UsageError(
      `Expected ${argument ? `one ${argument[0]}` : 'no argument'}, found ${positionals.length} arguments`,
    );
  }
  const [word = ''] = positionals;
  // `-` keeps an id out of the shell's history and the list of processes.
  const given = word === '-' ? (await text(process.stdin)).trim() : word;
  return command.run(given, values as Readonly<Record<string, string | undefined>>);
}

async function aboutProgram(args: string[]): Promise<Finding> {
  const { values } = parseArgs({ args, options: { ...flags, version: { type: 'boolean', short: 'v' } } });
  if (values.version) return shown([packageVersion()]);
  const loaded = Object.entries(commands).map(
    async ([name, load]) => [usageOf(name, await load()), (await load()).does] as const,
  );
  return shown([
    'taxpayer-gateway: a GraphQL gateway in front of a taxpayer-authorization service',
    '',
    'Usage:',
    ...table([
      ['taxpayer-gateway', 'starts the gateway'],
      ...(await Promise.all(loaded)),
      ['taxpayer-gateway [<command>] --help', 'shows this text, or the options of a command'],
    ]),
    '',
    exitCodes,
    '',
    'Without configuration it serves http://localhost:4000/graphql with an embedded sandbox of the service. Settings are environment variables:',
    'PORT, UPSTREAM_BASE_URL, AUTH_ISSUER, CACHE_URL and those in docs/configuration.md of this package.',
  ]);
}

const exitCodes =
  'All but sandbox need the environment variables of the gateway. Exit codes: 0 success, 1 a problem was found, 2 wrong arguments.';

const usageOf = (name: string, { argument }: Command) =>
  `taxpayer-gateway ${name}${argument ? ` <${argument[0]}>` : ''}`;

function helpOf(name: string, command: Command): string[] {
  const options = Object.entries(command.options ?? {}).map(
    ([option, meaning]) => [`--${option} <value>`, meaning] as const,
  );
  return [
    `Usage: ${usageOf(name, command)} [options]`,
    '',
    `It ${command.does}. ${command.details}`,
    '',
    ...table([
      ...(command.argument ? [[`<${command.argument[0]}>`, command.argument[1]] as const] : []),
      ...options,
      ['--json', 'print one JSON object'],
    ]),
    '',
    exitCodes,
  ];
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([first]) => first.length)) + 3;
  return rows.map(([first, second]) => `  ${first.padEnd(width)}${second}`);
}

const shown = (lines: readonly string[]): Finding => ({ ok: true, data: { text: lines.join('\n') }, lines });

/** One line for each thing that is wrong; an error that is not ours is a bug, and its message may quote anything. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  if (error instanceof GatewayError) return (error.violations ?? []).map(({ path, message }) => `${path} ${message}`);
  if (error instanceof StoreError) return [error.message];
  const problem = usageProblem(error) ?? listenProblem(error, '--port');
  return [problem ?? `A bug of the gateway: ${error instanceof Error ? error.name : typeof error}`];
}

/** In place of Node's messages, which quote the wrong word: it may be an id. */
const wrongWords: Readonly<Record<string, string>> = {
  ERR_PARSE_ARGS_UNKNOWN_OPTION: 'There is no such option; an id that begins with - can be given after --',
  ERR_PARSE_ARGS_INVALID_OPTION_VALUE: 'An option is missing its value, or has a value although it takes none',
  ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL: `Unknown command. Commands: ${Object.keys(commands).join(', ')}; without one the gateway starts`,
};

/** What was wrong with the call, without quoting any argument; undefined for another error. */
function usageProblem(error: unknown): string | undefined {
  if (error instanceof UsageError) return error.message;
  const { code = '' } = error as { readonly code?: string };
  return code === 'BAD_USER_INPUT' ? 'The id is malformed' : wrongWords[code];
}
