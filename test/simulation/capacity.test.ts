import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));
const documented = readFileSync(join(root, 'docs/capacity.md'), 'utf8');
/** A smaller fleet than the documented one: four processes for 40,000 taxpayers, 400 of which are simulated. */
const less = ['--processes', '4', '--rate', '10', '--taxpayers', '40000', '--known', '100000'];

let directory: string;
let page: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'capacity-'));
  page = join(directory, 'page.md');
  copyFileSync(join(root, 'docs/capacity.md'), page);
});
afterAll(() => rmSync(directory, { recursive: true }));

const npm = (...args: readonly string[]) => run('npm', args);
const capacity = (...args: readonly string[]) => run(process.execPath, ['test/simulation/capacity/main.js', ...args]);

function run(command: string, args: readonly string[]): Promise<{ readonly code: unknown; readonly text: string }> {
  const env = { ...process.env, NODE_OPTIONS: '' };
  return new Promise((resolve) => {
    execFile(command, args, { cwd: root, env }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, text: stdout + stderr }),
    );
  });
}

/** The first cell of each row, including the header rows. */
const firstCells = (text: string) => [...text.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = '']) => cell);
/** The cells of the first row that begins with `name`. */
function row(text: string, name: string): string[] {
  const line = text.split('\n').find((each) => each.startsWith(`| ${name} |`)) ?? '';
  return line
    .split('|')
    .slice(2, -1)
    .map((cell) => cell.trim());
}
const numberOf = (cell: string | undefined) => Number(cell?.replaceAll(',', ''));

describe('docs/capacity.md', () => {
  it('is written by its command: the rows of the page are those of a smaller fleet, which costs no call too many', async () => {
    const [, command = ''] = /^```sh\nnpm (.*)\n```$/m.exec(documented) ?? [];
    const { code, text } = await npm(...command.split(' '), '--page', page, ...less);
    expect({ code, text }).toMatchObject({ code: 0, text: expect.stringContaining('4 processes') });
    const written = readFileSync(page, 'utf8');
    const [head, , tail] = documented.split(/<!-- capacity: (?:begin|end) -->/);
    expect(written.split(/<!-- capacity: (?:begin|end) -->/)).toEqual([head, expect.any(String), tail]);
    expect(firstCells(written)).toEqual(firstCells(documented));

    for (const phase of ['all processes just started, the store full', 'as usual', 'the store has lost everything']) {
      const [requests, failed] = row(written, phase);
      expect({ phase, isLoaded: numberOf(requests) > 30, failed }).toEqual({ phase, isLoaded: true, failed: '0' });
    }
    const [, , , , more, over] = row(written, 'the store has lost everything');
    expect(numberOf(more)).toBeGreaterThan(5000); // most requests ask a process for a record that is not in its memory
    expect(numberOf(more)).toBeLessThanOrEqual(40_000);
    expect(over).toMatch(/^\d+ s$/);
    expect(row(written, 'a deploy in five minutes')[4]).toBe('–');
  }, 300_000);

  it('explains itself, and a wrong argument', async () => {
    expect(await capacity('--help')).toMatchObject({
      code: 0,
      text: expect.stringContaining('--sample N'),
    });
    for (const [args, message] of [
      [['--rate', 'much'], '--rate takes a whole number from 1 on, not "much"'],
      [['--sample', '300000'], '--sample must not be above --taxpayers'],
      [['--known', '10'], '--taxpayers must not be above --known'],
      [['--fast'], "Unknown option '--fast'"],
    ] as const) {
      const wrong = await capacity(...args);
      expect(wrong).toMatchObject({ code: 2, text: expect.stringContaining(message) });
    }
  });
});
