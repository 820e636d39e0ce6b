import { outcomeOf, startFleet } from '../../support/fleet.js';

describe('a record that the service cannot give', () => {
  async function scene(size = 1) {
    const fleet = await startFleet({ size, BREAKER_RESET_MS: 10_000 });
    const { sandbox, one } = fleet;
    const id = fleet.addTaxpayer();
    const fail = () => sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 422 } });
    return { ...fleet, broker: one.broker, id, fail, calls: () => sandbox.tokenCalls(id) };
  }

  it('is not asked for again at once after it failed twice in a row: stale or not, in a minute ten times', async () => {
    const { sandbox, id, addTaxpayer, fail, broker, advance } = await scene();
    await broker.record(id);
    advance(30 * 86_400_000 - 120_000);
    const unread = addTaxpayer();
    fail();
    const before = sandbox.tokenCalls(id);
    for (let second = 0; second < 60; second += 1) {
      expect(await broker.record(id)).toMatchObject({ stale: true });
      expect(await outcomeOf(broker.record(unread))).toBe('UPSTREAM_REJECTED');
      advance(1000);
    }
    // at 0, 1, 2, 4, 8, 16, 26, 36, 46 and 56 s: the pauses are 0, 1, 2, 4, 8 and then 10 s
    expect(sandbox.tokenCalls(id) - before).toBe(10);
    expect(sandbox.tokenCalls(unread)).toBe(10);

    sandbox.disarmAll();
    advance(6000);
    expect((await broker.record(id)).stale).toBeFalsy();
    expect(await outcomeOf(broker.record(unread))).toBe('answered');
  });

  it('is asked for at the next request after a single failure, and after an answer', async () => {
    const { sandbox, id, fail, broker, calls, advance } = await scene();
    for (let round = 1; round <= 3; round += 1) {
      fail();
      await outcomeOf(broker.record(id));
      sandbox.disarmAll();
      expect((await broker.record(id)).stale).toBeFalsy();
      expect(calls()).toBe(2 * round);
      advance(31 * 86_400_000);
    }
  });

  it('tells when to come back, and lets the other processes try', async () => {
    const { id, fail, broker, two, calls, advance } = await scene(2);
    fail();
    for (let n = 0; n < 4; n += 1) {
      await outcomeOf(broker.record(id));
      advance(n * 1000);
    }
    expect(calls()).toBe(4);
    const refusal = { code: 'UPSTREAM_REJECTED', retryAfterSeconds: 1, reason: 'HTTP 422' };
    await expect(broker.record(id)).rejects.toMatchObject(refusal);
    expect(calls()).toBe(4);
    await outcomeOf(two.broker.record(id));
    expect(calls()).toBe(5);
  });

  it('is not blamed for what concerns all: credentials, a budget', async () => {
    const { sandbox, id, broker, calls, advance } = await scene();
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 401 } });
    for (let n = 0; n < 6; n += 1) {
      expect(await outcomeOf(broker.record(id))).toBe('UPSTREAM_CREDENTIALS_REJECTED');
      advance(15_000); // half of the pause
    }
    sandbox.disarmAll();
    expect(await outcomeOf(broker.record(id))).toBe('answered');
    expect(calls()).toBe(4);
  });

  it('waits as long as the service asks for when the service asks for fewer calls', async () => {
    const { sandbox, id, fail, broker, calls } = await scene();
    fail();
    await outcomeOf(broker.record(id));
    sandbox.disarmAll();
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 429, headers: { 'retry-after': '60' } } });
    for (let n = 0; n < 2; n += 1) {
      const refusal = { code: 'UPSTREAM_RATE_LIMITED', retryAfterSeconds: 60 };
      await expect(broker.record(id)).rejects.toMatchObject(refusal);
    }
    expect(calls()).toBe(2);
  });
});
