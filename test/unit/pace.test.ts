import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Pace } from '../../src/admission/Pace.js';

describe('A pace of three at once, then one each ten milliseconds, at most fifty away', () => {
  let now = 0;
  const paced = () => {
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    return new Pace({ atOnce: 3, everyMs: 10, longestMs: 50 });
  };
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('gives turns at once, then one after the other, then none', () => {
    const pace = paced();
    const waits = Array.from({ length: 10 }, () => pace.take());
    expect(waits).toEqual([0, 0, 0, 10, 20, 30, 40, 50, Infinity, Infinity]);
  });

  it('gives turns at once again when there was time for those before', () => {
    const pace = paced();
    for (let n = 0; n < 6; n += 1) pace.take();
    now += 40;
    expect([pace.take(), pace.take()]).toEqual([0, 10]);
  });
});
