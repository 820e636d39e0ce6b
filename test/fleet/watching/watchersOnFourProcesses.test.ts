import { setTimeout as delay } from 'node:timers/promises';
import { environmentFor, type GatewayProcess, metric, spawnGateway, whenMetric } from '../../support/gateway.js';
import { addJob, watchJob } from '../../support/liveJob.js';
import { type RawSocket, rawSocket } from '../../support/rawSocket.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const processes = 4;
const socketsPerProcess = 10;
const watchersPerSocket = 5;
const watchers = processes * socketsPerProcess * watchersPerSocket;
const intervalMs = 1000;

describe('200 watchers on 4 processes over one Redis', () => {
  let sandbox: Sandbox;
  let redis: TestRedis;
  let fleet: GatewayProcess[] = [];
  let sockets: RawSocket[] = [];

  beforeAll(async () => {
    [sandbox, redis] = await Promise.all([startSandbox(), startRedis()]);
    const env = {
      ...environmentFor(sandbox),
      ...{ CACHE_URL: redis.url, TOKEN_FRESH_SECONDS: '2', TOKEN_BUDGET_PER_HOUR: '0' },
      ...{ JOB_POLL_MIN_MS: `${intervalMs}`, JOB_POLL_MAX_MS: `${intervalMs}` },
    };
    fleet = await Promise.all(times(processes, () => spawnGateway(env)));
  });

  beforeEach(() => {
    sockets = [];
  });

  async function open({ origin }: GatewayProcess): Promise<RawSocket> {
    const socket = rawSocket(origin);
    sockets.push(socket);
    await socket.init();
    return socket;
  }

  function subscribe(socket: RawSocket, variables: object, ids = ['0']) {
    for (const id of ids) socket.subscribe({ query: watchJob, variables }, id);
  }

  const count = (type: string) =>
    sockets.flatMap(({ received }) => received).filter((each) => each.type === type).length;

  it('cost one poll of a job per interval, all see its end within one, and leave nothing behind', async () => {
    const job = addJob({ sandbox });
    const handles = () => Promise.all(fleet.map((each) => metric(each, 'nodejs_active_handles_total')));
    const handlesBefore = await handles();
    await Promise.all(fleet.flatMap((each) => times(socketsPerProcess, () => open(each))));
    const ids = times(watchersPerSocket, (n) => `${n}`);
    for (const socket of sockets) subscribe(socket, job, ids);
    await until(() => count('next') === watchers, 60_000);
    const polls = () => sandbox.jobCalls(job.taxpayerId, job.jobId);
    const from = polls();
    await until(() => polls() === from + 4, 60_000);
    // A process that is late takes what another has read meanwhile.
    await delay(100);
    fleet[0]?.child.kill('SIGSTOP');
    await until(() => polls() === from + 6, 60_000);
    fleet[0]?.child.kill('SIGCONT');
    await until(() => polls() === from + 8, 60_000);
    sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    const pollsBefore = polls();
    await until(() => count('complete') === watchers, 60_000);
    expect(count('next')).toBe(2 * watchers);
    expect(polls() - pollsBefore).toBe(1);
    expect(sandbox.tokenCalls(job.taxpayerId)).toBe(1);
    const arrivals = sandbox.requests('refreshJob').map(({ receivedAt }) => receivedAt);
    const gaps = arrivals.slice(1).map((time, n) => time - (arrivals[n] ?? 0));
    // Polls are 900 to 1,100 ms apart; a second one within an interval would be a much shorter gap.
    expect(Math.min(...gaps)).toBeGreaterThan(intervalMs / 2);

    for (const socket of sockets) socket.end();
    await whenMetric(fleet[0] as GatewayProcess, 'gateway_open_streams', 0);
    for (const each of fleet) expect(await metric(each, 'gateway_watchers{kind="job"}')).toBe(0);
    await until(async () => (await handles()).every((now, n) => now <= (handlesBefore[n] ?? 0) + 2));
  });

  it('cost one call per taxpayer and interval, and all see a change within one', async () => {
    const taxpayers = sandbox.addTaxpayers(5, { status: 'CREATED' });
    await Promise.all(fleet.flatMap((each) => times(socketsPerProcess, () => open(each))));
    const query = 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }';
    for (const socket of sockets) {
      for (const id of taxpayers) socket.subscribe({ query, variables: { id } }, id);
    }
    await until(() => count('next') === watchers, 60_000);
    const calls = () => taxpayers.map((id) => sandbox.tokenCalls(id));
    expect(calls()).toEqual(taxpayers.map(() => 1));
    await until(() => calls().every((n) => n === 3), 60_000);
    for (const id of taxpayers) sandbox.updateTaxpayer(id, { status: 'COMPLETED' });
    await until(() => count('complete') === watchers, 60_000);
    expect(count('next')).toBe(2 * watchers);
    expect(calls()).toEqual(taxpayers.map(() => 4));
    for (const each of fleet) await whenMetric(each, 'gateway_watchers{kind="token"}', 0);
  });

  it('go on when the process that polls is killed, with one more poll', async () => {
    const job = addJob({ sandbox });
    const [poller, ...others] = fleet as [GatewayProcess, ...GatewayProcess[]];
    sandbox.arm({ endpoint: 'refreshJob', times: 1, fault: { gate: 'never' } });
    const polls = () => sandbox.jobCalls(job.taxpayerId, job.jobId);
    subscribe(await open(poller), job);
    await until(() => polls() === 1);
    const waiting = await Promise.all(others.map(open));
    for (const socket of waiting) subscribe(socket, job);
    await poller.kill();
    const isNews = ({ type }: { readonly type: string }) => type === 'next';
    await Promise.all(waiting.map((socket) => socket.message(isNews)));
    expect(polls()).toBe(2);
    sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'failed' });
    await Promise.all(waiting.map((socket) => socket.message(({ type }) => type === 'complete')));
  });
});
