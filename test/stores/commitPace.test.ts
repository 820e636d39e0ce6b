import { expect, it } from '@jest/globals';
import { realRuntime } from '../../src/process/Runtime.js';
import { CommitPace } from '../../src/stores/CommitPace.js';
import { VirtualTime } from '../support/VirtualTime.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

it('lets writes begin with all of their turn, and the next ones together when two milliseconds are over', async () => {
  const time = new VirtualTime(0);
  const pace = new CommitPace(time.runtime(realRuntime));
  const begun: string[] = [];
  const write = (name: string) => void pace.next().then(() => begun.push(`${name} at ${time.now} ms`));
  write('one');
  write('two');
  expect(begun).toEqual([]);
  await turn();
  await time.runUntil(0.5);
  write('three');
  await time.runUntil(1.5);
  write('four');
  await turn();
  expect(begun).toEqual(['one at 0 ms', 'two at 0 ms']);
  await time.runUntil(10);
  expect(begun.slice(2)).toEqual(['three at 2 ms', 'four at 2 ms']);
  write('five');
  await turn();
  expect(begun.at(-1)).toBe('five at 10 ms');
});
