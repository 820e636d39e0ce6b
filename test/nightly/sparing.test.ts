import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

const run = promisify(execFile);

/** The benchmark checks its own figures: it exits with 1 when one is not what is promised, which rejects here. */
async function check(scenarios: readonly string[]): Promise<string> {
  const loader = ['--import', 'tsx'];
  const args = ['bench/sparing.js', '--check', '--scenario', scenarios.join(',')];
  return (await run(process.execPath, [...loader, ...args])).stdout;
}

describe('a fleet of four processes', () => {
  it.each([
    ['calls the token endpoint once for 2,000 concurrent cold requests', 'cold-stampede'],
    ['calls it 1,000 times for 20,000 requests of 1,000 taxpayers', 'thousand-taxpayers'],
    ['does not call it after a rolling restart', 'rolling-restart'],
    ['does not call it after a kill -9 of every process', 'kill-all'],
    ['calls it once more when the process that was calling is killed', 'kill-lease-holder'],
    ['calls it once for each of 20 tokens rotated under load', 'token-rotation'],
  ])(
    '%s',
    async (_, scenario) => {
      expect(await check([scenario])).toContain(`| ${scenario} | 4 |`);
    },
    180_000,
  );
});

describe('a fleet of four processes whose Redis fails', () => {
  it.each([
    ['loses no request and asks for nothing again when Redis restarts under load', 'redis-restart'],
    ['loses no request when Redis is dead, and asks at most once per process', 'redis-dead'],
  ])(
    '%s',
    async (_, scenario) => {
      expect(await check([scenario])).toContain(`| ${scenario} | 4 |`);
    },
    180_000,
  );
});
