import { longestWaitSeconds } from '../../../src/context/TaxpayerAccess.js';
import {
  type Environment,
  metric,
  post,
  quickPolls,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
  type Texts,
  whenMetric,
} from '../../support/gateway.js';
import { addJob } from '../../support/liveJob.js';

let gateway: TestGateway;

const document = `query ($taxpayerId: ID!, $jobId: ID!, $waitSeconds: Int) {
  refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: $waitSeconds) { status }
}`;

/** A gateway that polls quickly, and a job that stays as it is until told otherwise. */
async function scene(env: Environment = {}) {
  gateway = await startTestGateway({ ...quickPolls, ...env });
  const { sandbox } = gateway;
  const job = addJob(gateway);
  const wait = (waitSeconds: number, headers?: Texts, more?: RequestInit) =>
    post(`${gateway.origin}/graphql`, { query: document, variables: { ...job, waitSeconds } }, headers, more);
  return { sandbox, ...job, wait };
}

const watchers = () => metric(gateway, 'gateway_watchers{kind="job"}');

const whenWatchers = (count: number) => whenMetric(gateway, 'gateway_watchers{kind="job"}', count);

const shown = (status: string) => ({ data: { refreshJob: { status } } });

describe('A query that waits for a job', () => {
  it('answers as soon as the job has ended', async () => {
    const { sandbox, taxpayerId, jobId, wait } = await scene();
    const answer = wait(300);
    await sandbox.whenCalled('refreshJob', 2);
    sandbox.updateJob(taxpayerId, jobId, { status: 'failed' });
    expect(await (await answer).json()).toEqual(shown('FAILED'));
    expect(await watchers()).toBe(0);
  });

  it("ends with its caller's token", async () => {
    const provider = await startTrustedProvider();
    const { taxpayerId, wait } = await scene(provider.env);
    const authorization = await provider.watcherOf([taxpayerId], 3);
    expect(await (await wait(300, { authorization })).json()).toEqual(shown('PROCESSING'));
  });

  it.each(['waits', 'asks first'])('ends when its client leaves while it %s, and so do the polls', async (during) => {
    const { sandbox, wait } = await scene();
    if (during !== 'waits') sandbox.arm({ endpoint: 'refreshJob', fault: { gate: 'first' }, times: 1 });
    const client = new AbortController();
    const answer = wait(300, {}, { signal: client.signal });
    await (during === 'waits' ? whenWatchers(1) : sandbox.whenCalled('refreshJob', 1));
    client.abort();
    await expect(answer).rejects.toThrow();
    for (let n = 0; n < 3; n += 1) await watchers(); // meanwhile the gateway hears of it
    sandbox.release('first');
    await whenMetric(gateway, 'gateway_operations_total{operation="refreshJob",transport="http",outcome="ok"}', 1);
    const polls = sandbox.counters().refreshJob;
    for (let n = 0; n < 3; n += 1) await watchers();
    expect(sandbox.counters().refreshJob).toBeLessThanOrEqual(polls + 1);
  });

  it('is answered when the gateway is told to end', async () => {
    const { wait } = await scene({ DRAIN_TIMEOUT_MS: '20000' }); // by which the answer must have left
    const answer = wait(300);
    await whenWatchers(1);
    const end = gateway.stop();
    const response = await answer;
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual(shown('PROCESSING'));
    await end;
  });

  it.each([-1, longestWaitSeconds + 1])('refuses to wait %d seconds', async (waitSeconds) => {
    const { wait } = await scene();
    expect(await (await wait(waitSeconds)).json()).toMatchObject({
      errors: [{ extensions: { code: 'BAD_USER_INPUT', violations: [{ path: 'waitSeconds' }] } }],
    });
  });
});
