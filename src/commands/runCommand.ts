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
    const usage = usageProblem(error);
    const problems = usage === undefined ? problemsOf(error) : [usage];
    const help = usage === undefined ? [] : [`See taxpayer-gateway ${load ? `${name} ` : ''}--help`];
    if (json) process.stdout.write(`${JSON.stringify({ ok: false, problems })}\n`);
    else process.stderr.write(`${[...problems, ...help].join('\n')}\n`);
    return usage === undefined ? 1 : 2;
  }
}

async function run(name: string, command: Command, args: string[]): Promise<Finding> {
  const { takesTaxpayer = false, options = {} } = command;
  const own = Object.fromEntries(Object.keys(options).map((option) => [option, { type: 'string' } as const]));
  const { values, positionals } = parseArgs({ args, options: { ...flags, ...own }, allowPositionals: true });
  if (values['help']) return shown(helpOf(name, command));
  if (positionals.length !== Number(takesTaxpayer)) {
    throw new UsageError(`Expected ${takesTaxpayer ? 'one taxpayerId' : 'no argument'}, found ${positionals.length}`);
  }
  const [word = ''] = positionals;
  // `-` keeps an id out of the shell's history and the list of processes.
  const given = word === '-' ? (await text(process.stdin)).trim() : word;
  return command.run(given, values as Readonly<Record<string, string | undefined>>);
}

async function aboutProgram(args: string[]): Promise<Finding> {
  if (args[0]?.startsWith('-') === false) {
    const names = Object.keys(commands).join(', ');
    throw new UsageError(`Unknown command. Commands: ${names}; without one the gateway starts`);
  }
  const { values } = parseArgs({ args, options: { ...flags, version: { ...flag, short: 'v' } } });
  if (values.version) return shown([packageVersion()]);
  const loaded = Object.entries(commands).map(async ([name, load]) => {
    const command = await load();
    return [usageOf(name, command), command.does] as const;
  });
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

const usageOf = (name: string, { takesTaxpayer }: Command) =>
  `taxpayer-gateway ${name}${takesTaxpayer ? ' <taxpayerId>' : ''}`;

const taxpayerArgument = [
  '<taxpayerId>',
  "the service's id of the taxpayer, or - to read it from standard input",
] as const;

function helpOf(name: string, command: Command): string[] {
  const { details, does, options = {}, takesTaxpayer } = command;
  return [
    `Usage: ${usageOf(name, command)} [options]`,
    '',
    `It ${does}. ${details}`,
    '',
    ...table([
      ...(takesTaxpayer ? [taxpayerArgument] : []),
      ...Object.entries(options).map(([option, meaning]) => [`--${option} <value>`, meaning] as const),
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
  return [
    listenProblem(error, '--port') ?? `A bug of the gateway: ${error instanceof Error ? error.name : typeof error}`,
  ];
}

/** What was wrong with the call, without quoting any argument: it may be an id. Undefined for another error. */
function usageProblem(error: unknown): string | undefined {
  if (error instanceof UsageError) return error.message;
  const { code = '' } = error as { readonly code?: string };
  if (code === 'BAD_USER_INPUT') return 'The id is malformed';
  return code.startsWith('ERR_PARSE_ARGS')
    ? 'There is no such option, or it lacks its value or takes none; an id that begins with - can be given after --'
    : undefined;
}
