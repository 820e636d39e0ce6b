import { type Member, outcomeOf, startFleet } from '../../support/fleet.js';
import { startTestGateway } from '../../support/gateway.js';
import { times } from '../../support/times.js';

/** After a refused new token, none is fetched for this long. */
const coolDownMs = 60_000;

describe('a token that the service no longer takes', () => {
  async function scene(size = 2) {
    const fleet = await startFleet({ size });
    const id = fleet.addTaxpayer({ status: 'AUTHORIZED' });
    return {
      ...fleet,
      id,
      newJob: () => fleet.addJob(id),
      member: (n: number) => fleet.members[n % size] as Member,
      calls: () => fleet.sandbox.tokenCalls(id),
    };
  }

  it('is fetched again exactly once for 200 concurrent jobs of four members', async () => {
    const { sandbox, id, newJob, members, member, calls } = await scene(4);
    const jobs = times(200, newJob);
    await Promise.all(members.map(({ broker }) => broker.record(id)));
    expect(calls()).toBe(1);
    sandbox.rotateToken(id);
    const outcomes = await Promise.all(jobs.map((job, n) => outcomeOf(member(n).jobs.status(id, job))));
    expect(new Set(outcomes)).toEqual(new Set(['answered']));
    expect(calls()).toBe(2);
  });

  it('is not fetched again for a late 401 when the service gave the very same token anew', async () => {
    const { sandbox, id, newJob, member, calls } = await scene();
    const jobs = [newJob(), newJob(), newJob()];
    await member(0).broker.record(id);
    sandbox.arm({ endpoint: 'refreshJob', fault: { status: 401 }, times: 3 });
    const outcomes = await Promise.all(jobs.map((job, n) => outcomeOf(member(n).jobs.status(id, job))));
    expect(outcomes).toEqual(['answered', 'answered', 'answered']);
    expect(calls()).toBe(2);
  });

  it('ends in TAXPAYER_NOT_AUTHORIZED when its successor is refused too, and in no further fetch for a minute', async () => {
    const { sandbox, id, newJob, member, advance, calls } = await scene();
    const job = newJob();
    sandbox.arm({ endpoint: 'refreshJob', fault: { status: 401 } });
    expect(await outcomeOf(member(0).jobs.status(id, job))).toBe('TAXPAYER_NOT_AUTHORIZED');
    expect(calls()).toBe(2);
    for (const n of [0, 1, 0, 1])
      expect(await outcomeOf(member(n).jobs.status(id, job))).toBe('TAXPAYER_NOT_AUTHORIZED');
    expect(calls()).toBe(2);
    expect(member(1).events).toContain('refetch-cool-down');

    advance(coolDownMs);
    sandbox.disarmAll();
    expect(await outcomeOf(member(1).jobs.status(id, job))).toBe('answered');
    expect(calls()).toBe(2);
  });

  it.each([400, 431])('is not what a %i to a job is about: no other token is fetched, now or later', async (status) => {
    const { sandbox, id, newJob, member, calls } = await scene();
    sandbox.arm({ endpoint: 'refreshJob', fault: { status } });
    for (const n of [0, 1]) {
      expect(await outcomeOf(member(n).jobs.status(id, newJob()))).toBe('UPSTREAM_REJECTED');
    }
    expect(calls()).toBe(1);
    sandbox.disarmAll();
    sandbox.rotateToken(id);
    expect(await outcomeOf(member(1).jobs.status(id, newJob()))).toBe('answered');
    expect(calls()).toBe(2);
  });

  it('costs two calls a minute at most while every token is refused, and jobs and the record are asked for', async () => {
    const { sandbox, id, newJob, member, advance, calls } = await scene();
    const job = newJob();
    sandbox.arm({ endpoint: 'refreshJob', fault: { status: 401 } });
    for (let n = 0; n < 60; n += 1) {
      await member(n).broker.record(id);
      expect(await outcomeOf(member(n).jobs.status(id, job))).toBe('TAXPAYER_NOT_AUTHORIZED');
      advance(10_000);
    }
    expect(calls()).toBeLessThanOrEqual(2 * 10);
    expect(calls()).toBeGreaterThanOrEqual(10);
  });
});

it('A query for a job is answered within two deadlines, although token, job and the next token are all slow', async () => {
  const deadlineMs = 2000;
  const { query, sandbox } = await startTestGateway({
    UPSTREAM_TIMEOUT_MS: '1000',
    UPSTREAM_DEADLINE_MS: String(deadlineMs),
  });

  const taxpayerId = sandbox.addTaxpayer().id;
  sandbox.addJob({ taxpayerId, jobId: 'job', durationMs: Infinity });
  sandbox.arm({ endpoint: 'taxpayerToken', fault: { gate: 'never' }, times: 1 });
  sandbox.arm({ endpoint: 'refreshJob', fault: { gate: 'never' }, times: 1 });
  sandbox.arm({ endpoint: 'refreshJob', fault: { delayMs: 600 } });
  const askedAt = performance.now();
  const answer = query('query ($taxpayerId: ID!) { refreshJob(taxpayerId: $taxpayerId, jobId: "job") { status } }', {
    taxpayerId,
  });
  await sandbox.whenCalled('refreshJob', 1);
  sandbox.rotateToken(taxpayerId);
  sandbox.arm({ endpoint: 'taxpayerToken', fault: { gate: 'never' } });
  expect((await answer).errors).toMatchObject([{ extensions: { code: 'UPSTREAM_TIMEOUT' } }]);
  expect(performance.now() - askedAt).toBeLessThan(3 * deadlineMs); // a busy machine may take the third
  expect(sandbox.tokenCalls(taxpayerId)).toBeGreaterThan(2); // the first with its repetition, and one for the replacement
});
