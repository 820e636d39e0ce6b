import { describe, expect, it } from '@jest/globals';
import { reportOf, simulateMonth } from '../bench/sparing/month.js';

/** Whole weeks, because nobody looks at weekends. */
const small = { seed: 3, taxpayers: 40, days: 14, parts: 2 };

describe('the simulated month', () => {
  it('costs far fewer token calls with the learned freshness, and shows the hosted flow sooner', async () => {
    const [fixed, learned] = await simulateMonth(small);
    if (!fixed || !learned) throw new Error('The month has two rules');
    expect(fixed.looks).toBeGreaterThan(100_000);
    expect(fixed.tokenCalls).toBeGreaterThan(8 * learned.tokenCalls);
    expect(learned.signing.median).toBeLessThan(fixed.signing.median);
    expect(fixed.all.longest).toBeLessThanOrEqual(24 * 3_600_000);
    expect(learned.jobCalls).toBeGreaterThan(0);
    expect(reportOf(await simulateMonth(small)).text).toBe(reportOf([fixed, learned]).text);
  }, 300_000);
});
