import { type ExecFileOptions, execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Runs a program to its end. @throws with what it printed when it fails */
export async function run(command: string, args: readonly string[], options: ExecFileOptions = {}) {
  return promisify(execFile)(command, args, { ...options, encoding: 'utf8' }).catch((failure) => {
    failure.message += failure.stdout;
    throw failure;
  });
}
