import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

const underLock = new URL('../../scripts/underLock.js', import.meta.url);
/** At each of the times that it is given, takes the lock, and fails when another process has it as well. */
const program = `
import { mkdir, rmdir } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { underLock } from '${underLock}';
for (const at of process.argv.slice(1).map(Number)) {
  await wait(at - Date.now() - 30);
  while (Date.now() < at);
  await underLock('lock', async () => {
    await mkdir('inside');
    await wait(2);
    await rmdir('inside');
  });
}
`;
/** More than any system gives. */
const deadPid = 2 ** 22 + 1;

let folder: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

const holdLock = (owner: string) => writeFileSync(join(folder, 'lock'), owner);
function takeLock(times: readonly number[] = [0]) {
  const args = ['--input-type=module', '-e', program, ...times.map(String)];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  children.push(child);
  const ended = Promise.all([once(child, 'close'), text(child.stderr)]);
  return { child, ended: ended.then(([[code], stderr]) => ({ code, stderr })) };
}

describe('A lock of the scripts', () => {
  it.each([
    ['names a process that is gone', `${deadPid}-some-uuid`],
    ['is empty', ''],
  ])(
    'is taken over when it %s',
    async (_, owner) => {
      holdLock(owner);
      expect(await takeLock().ended).toEqual({ code: 0, stderr: '' });
      expect(readdirSync(folder)).toEqual([]);
    },
    10_000,
  );

  it('is waited for while its process lives, and who that is is said once', async () => {
    holdLock(`${process.pid}-some-uuid`);
    const { child, ended } = takeLock();
    await once(child.stderr, 'readable');
    expect(existsSync(join(folder, 'inside'))).toBe(false);
    rmSync(join(folder, 'lock'));
    expect(await ended).toEqual({
      code: 0,
      stderr: `Waiting for process ${process.pid}, which holds lock. If that is another program, delete the file.\n`,
    });
  }, 10_000);

  it('lets one process in at a time, also when many find one that was left', async () => {
    const times = Array.from({ length: 15 }, (_, round) => Date.now() + 2000 + 400 * round);
    const all = Array.from({ length: 10 }, () => takeLock(times).ended);
    for (const at of times) {
      await wait(at - 100 - Date.now());
      holdLock(`${deadPid}-${at}`);
    }
    expect((await Promise.all(all)).filter(({ code }) => code !== 0)).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  }, 60_000);
});
