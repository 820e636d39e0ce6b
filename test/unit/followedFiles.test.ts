import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { follow } from '../../src/process/files.js';
import { atEnd, untilEnd } from '../support/atEnd.js';
import { scratch } from '../support/scratch.js';

it('a changed file that could not be read is tried again each minute, and logged once', async () => {
  jest.useFakeTimers();
  atEnd(() => void jest.useRealTimers());
  const path = join(scratch(), 'secret');
  writeFileSync(path, 'new');
  const lines: object[] = [];
  const log = { info: (fields: object) => void lines.push(fields), warn: (fields: object) => void lines.push(fields) };
  let tries = 0;
  const take = () => {
    tries += 1;
    if (tries < 3) throw new Error('cannot be read (EMFILE)');
    return { setting: 'A' };
  };
  follow({ paths: [path], log, take, stopped: untilEnd() });
  const problem = { problem: 'cannot be read (EMFILE)' };
  for (const [seconds, seen] of [
    [3, [problem]],
    [60, [problem]],
    [60, [problem, { setting: 'A' }]],
    [60, [problem, { setting: 'A' }]],
  ] as const) {
    await jest.advanceTimersByTimeAsync(1000 * seconds);
    expect(lines).toEqual(seen);
  }
  expect(tries).toBe(3);
});
