/** A command besides serving; what it is for says the help of `runCommand.ts`. */
export interface Command {
  /** Whether its argument is a taxpayer; otherwise it has none. */
  readonly takesTaxpayer?: boolean;
  /** Its options besides --json and --help. */
  readonly options?: Readonly<Record<string, { readonly type: 'string' }>>;
  run(argument: string, options: Readonly<Record<string, string | undefined>>): Promise<Finding>;
}

/** What a command found. */
export interface Finding {
  /** False when the command found a problem. */
  readonly ok: boolean;
  /** For programs. */
  readonly data: object;
  /** The same for people. */
  readonly lines: readonly string[];
}

/** The command was called wrongly; the message says what was expected. */
export class UsageError extends Error {}
