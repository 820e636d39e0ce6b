/** A command other than serving. The help in `runCommand.ts` says what each is for. */
export interface Command {
  /** Whether it takes one argument: a taxpayer id or, with --issuer, a subject. Otherwise it takes none. */
  readonly takesArgument?: boolean;
  /** The names of its options besides --json and --help. Each takes a value. */
  readonly options?: readonly string[];
  /** `argument`: empty where it takes none. */
  run(argument: string, options: Readonly<Record<string, string | undefined>>): Promise<Finding>;
}

export interface Finding {
  /** False when the command found a problem. Default: true. */
  readonly ok?: boolean;
  /** For programs. */
  readonly data: object;
  /** The same for people. */
  readonly lines: readonly string[];
}

/** The command was called wrongly; the message says what was expected. */
export class UsageError extends Error {}
