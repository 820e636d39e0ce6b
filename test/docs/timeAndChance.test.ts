import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

const script = fileURLToPath(new URL('../../scripts/timeAndChance.js', import.meta.url));

let src: string;
beforeEach(() => {
  src = mkdtempSync(join(tmpdir(), 'time-and-chance-'));
  for (const room of ['auth', 'cache', 'datasources', 'stores', 'upstream']) mkdirSync(join(src, room));
});
afterEach(() => rmSync(src, { recursive: true }));

function check(path: string, text: string) {
  writeFileSync(join(src, path), text);
  const { status, stdout } = spawnSync(process.execPath, [script, src], { encoding: 'utf8' });
  return { status, lines: stdout.trimEnd().split('\n') };
}

describe('The check of time and chance', () => {
  it.each([
    ['const at = Date.now();', 'Date.now'],
    ['const at = performance.now();', 'performance.now'],
    ['const timer = setTimeout(run, 5);', 'setTimeout'],
    ['const timer = setInterval(run, 5);', 'setInterval'],
    ["import { setTimeout as sleep } from 'node:timers/promises';", 'node:timers'],
    ['const share = Math.random();', 'Math.random'],
    ["import { createHmac, randomBytes } from 'node:crypto';", 'randomBytes'],
    ['const id = crypto.randomUUID();', 'crypto.random'],
  ])('refuses `%s`, with its file and line', (line, use) => {
    const { status, lines } = check('cache/Some.ts', `// a file\n${line}\n`);
    expect(status).toBe(1);
    expect(lines).toEqual([`src/cache/Some.ts:2: ${use}: take it from the Runtime (src/process/Runtime.ts)`]);
  });

  it.each([
    ['what a Runtime gives', 'cache/Some.ts', 'const timer = this.#runtime.setTimeout(run, runtime.now());'],
    ['a comment', 'cache/Some.ts', '/** Default `Date.now`. */ // and Math.random'],
    ['the drivers of real stores', 'stores/RedisStore.ts', 'const at = Date.now();'],
  ])('takes no offence at %s', (_, path, text) => {
    expect(check(path, text)).toEqual({ status: 0, lines: ['Time and chance come from the Runtime alone.'] });
  });
});
