import { parseArgs } from 'node:util';

/**
 * What a command was called with, read by `parseArgs` as `config` says. `--help` prints `help` and ends the process; an
 * option that is not in `config` ends it with exit code 2 and one line.
 */
export function readArguments(help, config = {}) {
  try {
    const parsed = parseArgs({ ...config, options: { ...config.options, help: { type: 'boolean', short: 'h' } } });
    if (!parsed.values.help) return parsed;
  } catch (error) {
    // After its first sentence Node.js explains how values can begin with a dash.
    console.error(`${error.message.split(/\.\s/)[0]}. See --help.`);
    process.exit(2);
  }
  console.log(help);
  process.exit();
}
