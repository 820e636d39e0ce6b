import { startProgram } from '../../support/program.js';

interface RouterProcess {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of the tests. */
  readonly env: Readonly<Record<string, string>>;
  /** The loopback port where it listens. */
  readonly port: number;
  /** Answers 2xx once the router is ready. */
  readonly healthPath: string;
}

/** Starts a router as a process of its own; resolves when it is ready. */
export async function startRouter({ command, args, env, port, healthPath }: RouterProcess) {
  const { answers, output } = startProgram(command, args, { env: { ...process.env, ...env }, detached: true });
  const origin = `http://127.0.0.1:${port}`;
  await answers(`${origin}${healthPath}`);
  return { origin, output };
}
