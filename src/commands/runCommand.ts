import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { ConfigError } from '../config/ConfigError.js';
import { loadConfig } from '../config/config.js';
import { GatewayError } from '../errors/errors.js';
import { StoreError } from '../stores/StoreError.js';
import { type Command, type CommandName, type Finding, isUsage, UsageError, usageProblem } from './Command.js';

const commands: Readonly<Record<CommandName, () => Promise<Command>>> = {
  inspect: async () => (await import('./inspect.js')).inspect,
  forget: async () => (await import('./forget.js')).forget,
  pseudonym: async () => (await import('./pseudonym.js')).pseudonym,
  check: async () => (await import('./check.js')).check,
};

/** Runs a command and returns its exit code: 0 when all is well, 1 when it found a problem, 2 when it was called wrongly. */
export async function runCommand(name: CommandName, args: readonly string[]): Promise<number> {
  // The driver of Redis prints warnings, which are no findings of the command.
  Object.assign(console, { warn: () => {}, error: () => {} });
  const command = await commands[name]();
  let json = args.includes('--json');
  try {
    const { values, positionals } = parse(command, args);
    json = values.json === true;
    if (values.help === true) {
      process.stdout.write(command.help);
      return 0;
    }
    const argument = await argumentOf(command, positionals);
    const option = command.option ? (values[command.option] as string | undefined) : undefined;
    const found = await command.run({ config: loadConfig(), argument, option });
    write(found, json);
    return found.ok ? 0 : 1;
  } catch (error) {
    const problems = problemsOf(error);
    if (json) process.stdout.write(`${JSON.stringify({ ok: false, problems })}\n`);
    else process.stderr.write(`${problems.join('\n')}\n`);
    if (!isUsage(error)) return 1;
    if (!json) process.stderr.write(`See taxpayer-gateway ${name} --help\n`);
    return 2;
  }
}

function parse({ option }: Command, args: readonly string[]) {
  const own = option ? { [option]: { type: 'string' as const } } : {};
  const options = { json: { type: 'boolean' as const }, help: { type: 'boolean' as const, short: 'h' }, ...own };
  return parseArgs({ args: [...args], options, allowPositionals: true }) as {
    readonly values: Readonly<Record<string, string | boolean | undefined>>;
    readonly positionals: readonly string[];
  };
}

/** The argument. `-` reads it from standard input, to keep it out of the shell's history and the list of processes. */
async function argumentOf({ argument }: Command, given: readonly string[]): Promise<string> {
  const wanted = argument === undefined ? 0 : 1;
  if (given.length !== wanted)
    throw new UsageError(`Expected ${argument ?? 'no argument'}, found ${given.length} arguments`);
  const [word = ''] = given;
  return word === '-' ? (await text(process.stdin)).trim() : word;
}

function write({ ok, data, lines }: Finding, json: boolean): void {
  process.stdout.write(json ? `${JSON.stringify({ ok, ...data })}\n` : `${lines.join('\n')}\n`);
}

/** One line for each thing that is wrong; an error that is not ours is a bug, and its message may quote anything. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  if (error instanceof GatewayError) return (error.violations ?? []).map(({ path, message }) => `${path} ${message}`);
  if (isUsage(error)) return [usageProblem(error)];
  if (error instanceof StoreError) return [error.message];
  return [`A bug of the gateway: ${error instanceof Error ? error.name : typeof error}`];
}
