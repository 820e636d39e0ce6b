import { describe, expect, it } from '@jest/globals';
import { LatestValue } from '../../src/datasources/LatestValue.js';

const done = { value: undefined, done: true };

describe('LatestValue', () => {
  it('keeps only the newest value for a reader who is busy, and ends once', async () => {
    let ends = 0;
    const values = new LatestValue<number>(() => {
      ends += 1;
    });
    for (const value of [1, 2, 3]) values.push(value);
    expect(await values.next()).toEqual({ value: 3, done: false });
    values.push(4);
    await values.return();
    values.push(5);
    expect(await values.next()).toEqual({ value: 4, done: false });
    expect(await values.next()).toEqual(done);
    await values.return();
    expect(ends).toBe(1);
  });

  it('gives each of several waiting calls a value of its own', async () => {
    const values = new LatestValue<number>(() => {});
    const [first, second] = [values.next(), values.next()];
    values.push(1);
    expect(await first).toEqual({ value: 1, done: false });
    values.push(2);
    expect(await second).toEqual({ value: 2, done: false });
  });

  it('fails once, after the value that was not read yet', async () => {
    const values = new LatestValue<number>(() => {});
    values.push(1);
    values.fail(new Error('gone'));
    expect(await values.next()).toEqual({ value: 1, done: false });
    await expect(values.next()).rejects.toThrow('gone');
    expect(await values.next()).toEqual(done);
  });

  it('ends for whoever is waiting', async () => {
    const values = new LatestValue<number>(() => {});
    const waiting = [values.next(), values.next()];
    await values.return();
    expect(await Promise.all(waiting)).toEqual([done, done]);
  });
});
