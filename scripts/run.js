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
