import type { Config } from '../config/config.js';

/** The words that the program accepts as its first argument. */
export const commandNames = ['inspect', 'forget', 'pseudonym', 'check'] as const;
export type CommandName = (typeof commandNames)[number];

/** What a command found: `data` for programs, `lines` for people. */
export interface Finding {
  /** False when the command found a problem. */
  readonly ok: boolean;
  readonly data: object;
  readonly lines: readonly string[];
}

/** A command besides serving. Each is a file of its own, loaded when it is called. */
export interface Command {
  readonly help: string;
  /** Its one argument, as the help names it. */
  readonly argument?: string;
  /** Name of an option of this command alone, which takes a value. */
  readonly option?: string;
  run(given: Given): Promise<Finding>;
}

export interface Given {
  readonly config: Config;
  /** The argument; empty for a command without one. */
  readonly argument: string;
  readonly option: string | undefined;
}

/** The command was called wrongly; the message says what was expected. */
export class UsageError extends Error {}

/** Used in place of Node's messages, which quote the wrong word: it may be an id. */
const wrongWords: Readonly<Record<string, string>> = {
  ERR_PARSE_ARGS_UNKNOWN_OPTION: 'There is no such option; an id that begins with - can be given after --',
  ERR_PARSE_ARGS_INVALID_OPTION_VALUE: 'An option is missing its value, or has a value although it takes none',
  ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL: `The first word must be ${commandNames.join(', ')}, or missing to start the gateway`,
};

/** What was wrong with the call, without quoting any argument. */
export function usageProblem(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return wrongWords[code] ?? message;
}

/** Whether the program or a command was called wrongly: the exit code is then 2. */
export function isUsage(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  return error instanceof UsageError || code === 'BAD_USER_INPUT' || String(code).startsWith('ERR_PARSE_ARGS');
}
