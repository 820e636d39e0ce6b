/** Everything wrong with the configuration, one line each; the lines never hold a value. */
export class ConfigError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}
