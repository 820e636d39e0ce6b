import { type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { atEnd } from './atEnd.js';
import { until } from './until.js';

export type Program = ReturnType<typeof startProgram>;

/**
 * Starts a program and kills it at the end of the test. With `detached`, signals go to all processes that it has started, too.
 * `exited` is its exit code, once all of its output is there.
 */
export function startProgram(command: string, args: readonly string[], options: SpawnOptions = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
  }
  const exited = once(child, 'close').then(([code]) => code as number | null);
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  const pid = child.pid ?? 0;
  const signal = (name: NodeJS.Signals) => isOver() || process.kill(options.detached ? -pid : pid, name);
  /** kill -9 */
  const kill = async () => {
    signal('SIGKILL');
    await exited;
  };
  atEnd(kill);
  /** Waits until `check` is true. @throws when the program ends before */
  const untilOrEnded = (check: () => Promise<boolean> | boolean) =>
    until(() => {
      if (isOver()) throw new Error(`${command} ended: ${text}`);
      return check();
    }, 120_000);
  return {
    child,
    pid,
    /** Everything written to standard output and standard error so far. */
    output: () => text,
    /** The most memory that the process has had. */
    peakKiB: () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
    exited,
    signal,
    kill,
    /** What the group of `pattern` matches, once that is printed. @throws when the program ends before */
    async printed(pattern: RegExp) {
      await untilOrEnded(() => pattern.test(text));
      return pattern.exec(text)?.[1] ?? '';
    },
    /** Resolves when a GET of `url` is answered with success. @throws when the program ends before */
    answers: (url: string) =>
      untilOrEnded(() =>
        fetch(url).then(
          ({ ok }) => ok,
          () => false,
        ),
      ),
  };
}
