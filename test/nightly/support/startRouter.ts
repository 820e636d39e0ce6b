import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { atEnd } from '../../support/atEnd.js';
import { until } from '../../support/until.js';

export interface RouterProcess {
  /** Its name in error messages. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of the tests. */
  readonly env: Readonly<Record<string, string>>;
  /** The loopback port where it listens. */
  readonly port: number;
  /** Answers 2xx once the router is ready. */
  readonly healthPath: string;
}

/** Starts a router as a process of its own; resolves when it is ready. @throws with its output when it exits before */
export async function startRouter({ name, command, args, env, port, healthPath }: RouterProcess) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const exited = once(child, 'exit');
  atEnd(() => {
    child.kill('SIGTERM');
    return exited;
  });
  const origin = `http://127.0.0.1:${port}`;
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended: ${output}`);
    const response = await fetch(`${origin}${healthPath}`).catch(() => undefined);
    return response?.ok === true;
  }, 60_000);
  return { origin };
}
