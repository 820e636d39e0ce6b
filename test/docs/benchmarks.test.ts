import { exec } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { attacks } from '../bench/hostile/attacks.js';

// The commands of two pages, each with less to do than written there. What they print is real; how fast a machine is proves
// nothing, so that only counts are looked at.

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = ['performance.md', 'measurements.md'];
const documented = pages.map((page) => readFileSync(join(root, 'docs', page), 'utf8')).join('\n');
const inBlocks = [...documented.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, text = '']) =>
  text.trim().split('\n'),
);
const inTables = [...documented.matchAll(/^\| `(npm [^`]+)` \|/gm)].map(([, command = '']) => command);
const commands = new Set([...inBlocks, ...inTables]);
const lessOf: Readonly<Record<string, string>> = {
  'npm run bench -- --write':
    '--quick --scenario hot-token --scenario cold-job-known --scenario revoked --target gateway --target gatewayRedis --target rawHttp --into "$PAGES"',
  'npm run bench -- --scenario tail': '--quick --rounds 1 --scenario sockets --scenario changing-jobs --target gateway',
  'npm run bench -- --profile cold-record': '--quick --rounds 2',
  'npm run bench:soak': '-- --minutes 0.1 --per-second 10',
  'npm run bench:hostile -- --write': '--quick --into "$PAGES"',
  'npm run bench:growth -- --write': '--quick --part watchers --part start --into "$PAGES"',
  'TEST_PLANS=off npm test': '-- test/auth/authorization.test.ts',
};

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'bench-pages-'));
  for (const page of pages) copyFileSync(join(root, 'docs', page), join(directory, page));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** As the commands have left it. */
const written = (page: string) => readFileSync(join(directory, page), 'utf8');

async function run(command: string): Promise<string> {
  const env = { ...process.env, PAGES: directory, NODE_OPTIONS: '' };
  return (await promisify(exec)(`${command} ${lessOf[command]}`, { cwd: root, env })).stdout;
}

/** The cells of the row of a printed table that begins with `name`. */
function row(output: string, name: string): string[] {
  const line = output.split('\n').findLast((text) => text.startsWith(`| ${name} |`)) ?? '';
  return line.split('|').map((cell) => cell.trim());
}

describe('docs/performance.md and docs/measurements.md', () => {
  it('have only commands that are tried here', () => {
    expect([...commands].sort()).toEqual(Object.keys(lessOf).sort());
  });

  it('compares: no request of the gateway fails, revoked tokens cost one call for each taxpayer', async () => {
    const output = await run('npm run bench -- --write');
    const [hot = '', cold = ''] = output.split(/\*\*(?:First status|Every access token)/);
    const [, , , , , , , , callsPer1000, , failed] = row(hot, 'gateway');
    expect({ callsPer1000, failed }).toEqual({ callsPer1000: '0.0', failed: '0' });
    for (const target of ['gateway', 'gatewayRedis']) {
      const [, , , , , , , , calls, store, refused] = row(cold, target);
      expect({ target, calls, asksStore: Number(store) > 0, refused }).toEqual({
        ...{ target, calls: '1000', asksStore: true, refused: '0' },
      });
    }
    expect(row(cold, 'rawHttp')[9]).toBe('–');
    const [, , failedOf100, tokenCalls] = row(output, 'gateway');
    expect(failedOf100).toBe('0');
    expect(Number(tokenCalls)).toBeLessThanOrEqual(20);
    expect(output).toContain('| CPU of the gateway to rawHttp, `hot-token` | at most 1.3x |');
    const measurements = written('measurements.md');
    const [summary = ''] = output.slice(output.indexOf('**Meant and measured')).split('\nWritten to');
    expect(measurements).toContain(summary.trim());
    const hotToken = 'Token record of one taxpayer, asked for before (`hot-token`)';
    for (const page of pages) expect(row(written(page), hotToken)[7]).toBe('0.0');
    expect(row(written('performance.md'), hotToken)[5]).toMatch(/x(\*\*)? \(0\.77x\)$/);
    const growth = (text: string) => text.slice(text.indexOf('## Growth'));
    expect(growth(measurements)).toBe(growth(documented));
  }, 180_000);

  it('says where the time of a scenario goes: every room that works for it, and no more than all of it', async () => {
    const output = await run('npm run bench -- --profile cold-record');
    for (const room of ['src/http', 'src/cache', 'src/upstream', 'node-fetch', 'garbage collection']) {
      expect({ room, us: Number(row(output, room)[2]) > 0 }).toEqual({ room, us: true });
    }
    const shares = output
      .split('\n')
      .filter((line) => / %\W*$/.test(line) && !line.startsWith('| all |'))
      .map((line) => Number.parseFloat(line.split('|')[3] ?? ''));
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(100, -1);
    expect(output).toContain('400 requests, 0 failed; for 1,000 requests 1000 calls to the service');
  }, 180_000);

  it('names a scenario that it cannot profile', async () => {
    const asked = promisify(exec)('npm run bench -- --profile tomorrow', { cwd: root });
    await expect(asked).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--profile tomorrow is not'),
    });
  }, 60_000);

  it('shows what production does: open connections, changing jobs and the tail, each with its cost', async () => {
    const stdout = await run('npm run bench -- --scenario tail');
    for (const kind of ['idle WebSockets', 'event streams']) expect(row(stdout, kind)[3]).toBe('400');
    expect(Number(row(stdout, 'event streams')[5])).toBeGreaterThan(0);
    for (const jobs of ['100', '400']) expect(Number(row(stdout, jobs)[8])).toBeGreaterThan(0);
    expect(
      stdout.match(/^\| 50 jobs of 10 taxpayers in one request, \d+\/s \((25|50|75) %\) \| gateway \|/gm),
    ).toHaveLength(3);
  }, 300_000);

  it('soaks: one row of requests and memory after another', async () => {
    const env = { ...process.env, NODE_OPTIONS: '' };
    const command = `npm run bench:soak ${lessOf['npm run bench:soak']}`;
    // On a busy machine a request may fail, and the command with it.
    const { stdout } = await promisify(exec)(command, { cwd: root, env }).catch((error) => error);
    const [, , requests, , , , , , held] = row(stdout, '0.1');
    expect({ requests, holds: Number(held) > 10 }).toEqual({ requests: '50', holds: true });
    expect(stdout).toMatch(/^\d+ requests failed\.$/m);
  }, 180_000);

  it('shows growth: one poll for each job and change, whatever the number of watchers', async () => {
    const output = await run('npm run bench:growth -- --write');
    for (const watchers of ['10', '1000']) expect(row(output, watchers)[4]).toBe('1.00');
    expect(Number(row(output, 'ms from spawn to ready')[2])).toBeGreaterThan(0);
    expect(written('measurements.md')).toContain('Watchers in one process');
  }, 180_000);

  it('shows a hostile caller: the gateway goes on, and no honest caller is refused', async () => {
    const output = await run('npm run bench:hostile -- --write');
    const rows = ['alone', ...Object.keys(attacks), 'all at once', 'a minute later'].map((name) => row(output, name));
    for (const [, name, requests, failed] of rows) {
      expect({ name, isServed: Number(requests) > 10, failed }).toEqual({ name, isServed: true, failed: '0' });
    }
    expect(written('measurements.md')).toContain('all at once');
  }, 180_000);

  it('runs the tests without plans', async () => {
    expect(await run('TEST_PLANS=off npm test')).toMatch(/^[1-9]\d* passed, 0 failed$/m);
  }, 180_000);
});
