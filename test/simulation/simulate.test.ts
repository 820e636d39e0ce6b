import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What `npm run simulate` prints, and its exit code. */
function simulate(...args: readonly string[]): Promise<{ readonly code: unknown; readonly text: string }> {
  const command = ['test/simulation/main.js', ...args];
  const env = { ...process.env, NODE_OPTIONS: '' };
  return new Promise((resolve) => {
    execFile(process.execPath, command, { cwd: root, env, maxBuffer: 1e8 }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, text: stdout + stderr }),
    );
  });
}

describe('The simulated fleet', () => {
  it('keeps its promises for the same seeds at every run, and for those that have failed before', async () => {
    const seeds = await simulate('--from', '1', '--seeds', '300');
    expect(seeds.text).toMatch(/^300 seeds from 1 in [\d.]+ s \(\d+ a second\): 0 failed$/m);
    expect(seeds.code).toBe(0);
    expect(await simulate('--failed')).toMatchObject({ code: 0, text: expect.stringMatching(/: 0 failed$/m) });
  }, 300_000);
});
