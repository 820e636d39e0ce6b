/** A command besides serving. Each is loaded when it is called. */
export interface Command {
  /** What it does, in a few words. */
  readonly does: string;
  /** What else there is to know, in whole sentences. */
  readonly details: string;
  /** Whether its argument is a taxpayer; otherwise it has none. */
  readonly takesTaxpayer?: boolean;
  /** Its options besides --json and --help, which take a value: their name, and what they are. */
  readonly options?: Readonly<Record<string, string>>;
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
