import { describe, expect, it } from '@jest/globals';
import { reportOf, simulateMonth } from '../../bench/sparing/month.js';

describe('a simulated fortnight of 40 taxpayers', () => {
  it('costs far fewer token calls with the learned freshness, and shows the hosted flow sooner', async () => {
    const month = await simulateMonth({ seed: 14, taxpayers: 40, days: 14, parts: 2 });
    const { before: fixed, after: learned } = month;
    if (!fixed || !learned) throw new Error('There must be two rules');
    expect(fixed.looks).toBeGreaterThan(100_000);
    expect(fixed.tokenCalls).toBeGreaterThan(8 * learned.tokenCalls);
    expect(learned.signing.count).toBeGreaterThan(0);
    expect(learned.signing.median).toBeLessThan(fixed.signing.median);
    expect(learned.steps.p95Share).toBeLessThan(0.12);
    expect(fixed.steps.p95).toBeLessThanOrEqual(900_000);
    expect(learned.jobEnds.p95).toBeLessThanOrEqual(33_000); // the longest pause of a watcher, with its jitter
    expect(reportOf(month).broken).toEqual([]);
  }, 300_000);
});
