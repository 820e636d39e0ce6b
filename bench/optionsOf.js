import { parseArgs } from 'node:util';

/** The options of a command, as in `parseArgs`; `among` lists what an option may be. Ends the process after `--help` or an unknown value. */
export function optionsOf(help, options) {
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean' } } });
  const unknown = Object.entries(options).flatMap(([name, { among }]) =>
    [values[name] ?? []].flat().flatMap((value) => (among?.includes(value) === false ? `--${name} ${value}` : [])),
  );
  if (unknown.length === 0 && !values.help) return values;
  if (unknown.length > 0) process.stderr.write(`Unknown: ${unknown.join(', ')}\n\n`);
  process.stdout.write(help);
  process.exit(unknown.length > 0 ? 2 : 0);
}
