// How the benchmarks print: tables in Markdown, on the screen or in a page.

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';

/** The machine in one line. */
export function machine() {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} x ${cpu.model.trim()}, ${memory} GB, ${type()} ${release()}, Node.js ${process.version}`;
}

export function table(columns, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |\n`;
  return line(columns) + line(columns.map((_, index) => (index === 0 ? '---' : '--:'))) + rows.map(line).join('');
}

export function round(number) {
  return number >= 100 ? String(Math.round(number)) : number.toFixed(1);
}

/** Replaces the text between the two markers `name` of a page; the rest of the page is hand-written. */
export function writeSection(name, text, path) {
  const file = new URL(`../${path}`, import.meta.url);
  const section = new RegExp(`(?<=<!-- ${name}: begin -->)[^]*(?=<!-- ${name}: end -->)`);
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace(section, () => `\n${text}\n`),
  );
  process.stdout.write(`\nWritten to ${path}\n`);
}
