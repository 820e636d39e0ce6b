import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { rooms } from '../mutation/rooms.js';

const run = (...args: readonly string[]) => promisify(execFile)(process.execPath, ['scripts/mutation.js', ...args]);

describe('npm run mutation', () => {
  it('explains itself', async () => {
    const { stdout } = await run('--help');
    for (const word of ['Usage: npm run mutation', '--write', '--mutate', ...Object.keys(rooms)]) {
      expect(stdout).toContain(word);
    }
  });

  it.each([
    [['nowhere'], "Unknown room 'nowhere': expected cache, upstream, datasources, auth"],
    [['--concurrency', 'many', 'cache'], '--concurrency expects a number'],
    [['--mutate', 'src/cache/sealing.ts'], '--mutate expects exactly one room'],
    [['--write', 'cache'], '--write expects no room: the page shows all of them'],
  ])('refuses %j and says what it expects', async (args, message) => {
    await expect(run(...args)).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });

  it('names rooms that exist, tests that exist, and the share its page promises', () => {
    for (const [room, tests] of Object.entries(rooms)) {
      expect(readdirSync(`src/${room}`).length).toBeGreaterThan(0);
      for (const name of tests)
        expect({ name, exists: existsSync(`test/${room}/${name}.test.ts`) }).toEqual({ name, exists: true });
    }
    const page = readFileSync('docs/mutation.md', 'utf8');
    const [, least] = /const least = (\d+);/.exec(readFileSync('scripts/mutation.js', 'utf8')) ?? [];
    expect(page).toContain(`At least ${least} %`);
    expect(page).toContain('npm run mutation -- cache\n');
  });
});
