import { parseArgs } from 'node:util';

/**
 * The options of a command, as in `parseArgs`; `among` lists the values of one that is `multiple` and has a default. Ends the process
 * after `--help` or an unknown value.
 */
export function optionsOf(help, options) {
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean' } } });
  const unknown = Object.entries(options).flatMap(([name, { among }]) => {
    const others = among ? values[name].filter((value) => !among.includes(value)) : [];
    return others.map((value) => `--${name} ${value}`);
  });
  if (unknown.length === 0 && !values.help) return values;
  if (unknown.length > 0) process.stderr.write(`Unknown: ${unknown.join(', ')}\n\n`);
  process.stdout.write(help);
  process.exit(unknown.length > 0 ? 2 : 0);
}
