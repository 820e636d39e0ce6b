import { exec } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { attacks } from '../bench/hostile/attacks.js';

// The commands of docs/performance.md, each with less to do than written there. What they print is real; how fast a
// machine is proves nothing, so that only counts are looked at.

const root = fileURLToPath(new URL('../..', import.meta.url));
const documented = readFileSync(join(root, 'docs/performance.md'), 'utf8');
const commands = [...documented.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, text = '']) =>
  text.trim().split('\n'),
);
const lessOf: Readonly<Record<string, string>> = {
  'npm run bench -- --write':
    '--quick --scenario hot-token --scenario revoked --target gateway --target rawHttp --page "$PAGE"',
  'npm run bench:hostile -- --write': '--quick --page "$PAGE"',
  'npm run bench:growth -- --write': '--quick --part watchers --part start --page "$PAGE"',
  'TEST_PLANS=off npm test': '-- test/auth/authorization.test.ts',
};

let directory: string;
let page: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'bench-page-'));
  page = join(directory, 'page.md');
  copyFileSync(join(root, 'docs/performance.md'), page);
});
afterAll(() => rmSync(directory, { recursive: true }));

async function run(command: string): Promise<string> {
  const env = { ...process.env, PAGE: page, NODE_OPTIONS: '' };
  return (await promisify(exec)(`${command} ${lessOf[command]}`, { cwd: root, env })).stdout;
}

/** The cells of the row of a printed table that begins with `name`. */
function row(output: string, name: string): string[] {
  const line = output.split('\n').findLast((text) => text.startsWith(`| ${name} |`)) ?? '';
  return line.split('|').map((cell) => cell.trim());
}

describe('docs/performance.md', () => {
  it('has only commands that are tried here', () => {
    expect(commands.sort()).toEqual(Object.keys(lessOf).sort());
  });

  it('compares: no request of the gateway fails, revoked tokens cost one call for each taxpayer', async () => {
    const output = await run('npm run bench -- --write');
    const [, , , , , , , , callsPer1000, failed] = row(output.split('**Every access token')[0] ?? '', 'gateway');
    expect({ callsPer1000, failed }).toEqual({ callsPer1000: '0.0', failed: '0' });
    const [, , failedOf100, tokenCalls] = row(output, 'gateway');
    expect(failedOf100).toBe('0');
    expect(Number(tokenCalls)).toBeLessThanOrEqual(20);
    expect(output).toContain('| CPU of the gateway to rawHttp, `hot-token` | at most 1.6x |');
    const written = readFileSync(page, 'utf8');
    expect(written).toContain(row(output, 'gateway').join(' | ').trim());
    expect(written.slice(written.indexOf('## Growth'))).toBe(documented.slice(documented.indexOf('## Growth')));
  }, 180_000);

  it('shows growth: one poll for each job and change, whatever the number of watchers', async () => {
    const output = await run('npm run bench:growth -- --write');
    for (const watchers of ['10', '1000']) expect(row(output, watchers)[4]).toBe('1.00');
    expect(Number(row(output, 'ms from spawn to ready')[2])).toBeGreaterThan(0);
    expect(readFileSync(page, 'utf8')).toContain('Watchers in one process');
  }, 180_000);

  it('shows a hostile caller: the gateway goes on, and no honest caller is refused', async () => {
    const output = await run('npm run bench:hostile -- --write');
    const rows = ['alone', ...Object.keys(attacks), 'all at once', 'a minute later'].map((name) => row(output, name));
    for (const [, name, requests, failed] of rows) {
      expect({ name, isServed: Number(requests) > 10, failed }).toEqual({ name, isServed: true, failed: '0' });
    }
    expect(readFileSync(page, 'utf8')).toContain('all at once');
  }, 180_000);

  it('runs the tests without plans', async () => {
    expect(await run('TEST_PLANS=off npm test')).toMatch(/^[1-9]\d* passed, 0 failed$/m);
  }, 180_000);
});
