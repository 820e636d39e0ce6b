import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** How often files are looked at, in milliseconds: by name, because mounted secrets are replaced through a symbolic link. */
const lookEveryMs = 1000;
/** How often a file that could not be used is tried again, in milliseconds: reading it may have failed only for a moment. */
const retryEveryMs = 60_000;

export interface Followed {
  /** Files and folders. */
  readonly paths: readonly string[];
  readonly log: Readonly<Record<'info' | 'warn', (fields: object, message: string) => void>>;
  /** Takes over what the files hold and returns the fields of a log line; undefined when nothing has changed. */
  readonly take: () => object | undefined | Promise<object | undefined>;
  /** Aborts when nothing needs to be followed any more. */
  readonly stopped: AbortSignal;
}

/**
 * Calls `take` soon, then after each change of the files and of those in folders, once they have stayed the same for a second:
 * until then a file may be half-written, or newer than one that belongs to it. Leaves out pipes, which can be read only once.
 * Logs the result. Tries a file that cannot be used again each minute. Does not keep the process alive.
 */
export function follow({ paths, log, take, stopped }: Followed): void {
  let taken = '';
  let seen = '';
  let problem: string | undefined;
  let triedAt = 0;
  const timer = setInterval(async () => {
    const state = paths.map((path) => stateOf(path)).join('');
    const hasSettled = state === seen;
    seen = state;
    const isNew = state !== taken;
    const isRetry = problem !== undefined && performance.now() - triedAt >= retryEveryMs;
    if (!hasSettled || !(isNew || isRetry)) return;
    taken = state;
    triedAt = performance.now();
    try {
      const fields = await take();
      const news = fields ?? (problem && { endedProblem: problem });
      if (news) log.info(news, 'a changed file was read again');
      problem = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (isNew || message !== problem) {
        log.warn({ problem: message }, 'a changed file cannot be used: what was read before stays in use');
      }
      problem = message;
    }
  }, lookEveryMs).unref();
  stopped.addEventListener('abort', () => clearInterval(timer));
}

/** A text that changes when the file, or a file right in the folder, does, or when it can no longer be read. */
function stateOf(path: string, isInFolder = false): string {
  try {
    const stats = statSync(path);
    if (stats.isDirectory() && !isInFolder)
      return readdirSync(path)
        .map((name) => stateOf(join(path, name), true))
        .join('');
    return stats.isFile() ? `${path} ${stats.ino} ${stats.size} ${stats.ctimeMs}\n` : '';
  } catch (error) {
    return `${path} ${(error as NodeJS.ErrnoException).code}\n`;
  }
}

/** The text of a file without the byte order mark that some editors begin it with. */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}
