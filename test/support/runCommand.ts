import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { type Environment, entry } from './gateway.js';

interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built entry with `args`; its environment is only `env`. */
export async function runCommand(env: Environment, args: readonly string[], input = ''): Promise<CommandResult> {
  const child = spawn(process.execPath, [entry, ...args], { env: env as NodeJS.ProcessEnv });
  child.stdin.end(input);
  const exited = once(child, 'exit');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: (await exited)[0], stdout, stderr };
}

/** As {@link runCommand}, for a command that succeeds and prints JSON. */
export async function commandJson(env: Environment, ...args: readonly string[]) {
  const { code, stdout, stderr } = await runCommand(env, [...args, '--json']);
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}: ${stdout}${stderr}`);
  return JSON.parse(stdout);
}
