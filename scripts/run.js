import { spawn } from 'node:child_process';

/**
 * Runs a program to its end, with `cwd` and `env` as in `spawn`. Rejects only when it cannot be started.
 * @returns `{ code, output }`: the exit code, and what both streams printed, as it came, without blanks at the end
 */
export async function run(command, args, options) {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  return { code, output: output.trimEnd() };
}

/** Runs a program in place of this one: in its terminal, with its signals, ending as it ends. Rejects when it cannot be started. */
export async function runInPlace(command, args, env) {
  const child = spawn(command, args, { env, stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  const code = await new Promise((resolve, reject) => {
    child.once('exit', resolve);
    child.once('error', (error) => reject(new Error(`${command} cannot be started: ${error.code}`)));
  });
  process.exit(code ?? 1);
}

/** Signals a detached child and what it started, as Ctrl-C in a terminal does. */
export function killGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
