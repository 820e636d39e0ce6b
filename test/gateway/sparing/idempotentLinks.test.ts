import { setTimeout as delay } from 'node:timers/promises';
import { type FleetOptions, outcomeOf, startFleet } from '../../support/fleet.js';

const input = { metadata: { case: 'C-1' }, settings: { prefillData: { personalInfo: { ssn: 'planted-ssn-000-11' } } } };
const mine = ['caller-1', 'key-1'] as const;

describe('createClientLink with an idempotency key', () => {
  async function scene(options: FleetOptions = {}) {
    const { one, two, sandbox, advance } = await startFleet({ size: 2, ...options });
    return { one: one.links, two: two.links, sandbox, advance, posts: () => sandbox.counters().createClientLink };
  }

  it('lets the second of two concurrent requests create the link when the first definitely failed', async () => {
    const { one, two, sandbox } = await scene();
    sandbox.arm({ endpoint: 'createClientLink', fault: { status: 422 }, times: 1 });
    const outcomes = await Promise.all([one, two].map((links) => outcomeOf(links.create(input, mine))));
    expect(outcomes.sort()).toEqual(['UPSTREAM_REJECTED', 'answered']);
  });

  it('waits for a creation under way on a process whose clock is five minutes behind or ahead', async () => {
    for (const aheadMs of [-300_000, 300_000]) {
      const { one, two, sandbox, posts } = await scene({ aheadMs: [aheadMs, 0] });
      sandbox.arm({ endpoint: 'createClientLink', fault: { gate: 'slow' }, times: 1 });
      const first = one.create(input, mine);
      await sandbox.whenCalled('createClientLink', 1);
      const second = two.create(input, mine);
      const third = outcomeOf(two.create(input, mine));
      await delay(120); // both have looked at the record by then
      sandbox.release('slow');
      expect(await second).toEqual({ ...(await first), replayed: true });
      expect(await third).toBe('answered');
      expect(posts()).toBe(1);
    }
  });

  it('remembers a key for 24 hours, and no longer', async () => {
    const { one, two, advance, posts } = await scene();
    await one.create(input, mine);
    advance(24 * 3_600_000 - 1000);
    for (const links of [one, two]) expect((await links.create(input, mine)).replayed).toBe(true);
    advance(1000);
    expect((await one.create(input, mine)).replayed).toBe(false);
    expect(posts()).toBe(2);
  });
});
