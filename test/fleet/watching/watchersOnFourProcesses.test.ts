import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { environmentFor, type GatewayProcess, spawnGateway } from '../../support/gateway.js';
import { metric, watchJob } from '../../support/liveJob.js';
import { type RawSocket, rawSocket } from '../../support/rawSocket.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { until } from '../../support/until.js';

const processes = 4;
const socketsPerProcess = 25;
const watchersPerSocket = 10;
const watchers = processes * socketsPerProcess * watchersPerSocket;
const intervalMs = 1000;

describe.each(['redis', 'lmdb'])('1,000 watchers of one job on 4 processes with %s', (kind) => {
  let sandbox: Sandbox;
  let redis: TestRedis;
  let directory: string;
  let fleet: GatewayProcess[] = [];
  let sockets: RawSocket[] = [];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'watchers-'));
    [sandbox, redis] = await Promise.all([
      startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' }),
      startRedis(),
    ]);
  });

  afterEach(async () => {
    for (const socket of sockets) socket.end();
    sockets = [];
    sandbox.control.disarmAll();
    await Promise.all(fleet.map((each) => each.stop()));
    fleet = [];
  });

  afterAll(async () => {
    await Promise.all([sandbox.stop(), redis.stop()]);
    await rm(directory, { recursive: true, force: true });
  });

  async function startFleet(name: string, env: Readonly<Record<string, string>>): Promise<void> {
    const start = () =>
      spawnGateway({
        ...environmentFor(sandbox),
        CACHE_URL: kind === 'redis' ? redis.url : `lmdb:${join(directory, name)}`,
        ...env,
      });
    fleet = await Promise.all(Array.from({ length: processes }, start));
  }

  function addJob() {
    const { id: taxpayerId } = sandbox.control.addTaxpayer({ status: 'AUTHORIZED' });
    const { jobId } = sandbox.control.addJob({ taxpayerId, endsAs: null });
    return { taxpayerId, jobId };
  }

  async function open({ origin }: GatewayProcess): Promise<RawSocket> {
    const socket = rawSocket(origin);
    sockets.push(socket);
    await socket.init();
    return socket;
  }

  function subscribe(socket: RawSocket, variables: object, ids = ['0']): void {
    for (const id of ids) socket.send({ type: 'subscribe', id, payload: { query: watchJob, variables } });
  }

  const count = (type: string) =>
    sockets.flatMap(({ received }) => received).filter((each) => each.type === type).length;

  it('costs one poll per interval, tells all of them the end within one, and leaves nothing behind', async () => {
    await startFleet('polls', { JOB_POLL_MIN_MS: `${intervalMs}`, JOB_POLL_MAX_MS: `${intervalMs}` });
    const job = addJob();
    const handles = () => Promise.all(fleet.map((each) => metric(each, 'nodejs_active_handles_total')));
    const heaps = () => Promise.all(fleet.map((each) => metric(each, 'nodejs_heap_size_used_bytes')));
    const [handlesBefore, heapsBefore] = [await handles(), await heaps()];
    await Promise.all(fleet.flatMap((each) => Array.from({ length: socketsPerProcess }, () => open(each))));
    const ids = Array.from({ length: watchersPerSocket }, (_, n) => `${n}`);
    for (const socket of sockets) subscribe(socket, job, ids);
    await until(() => count('next') === watchers, 20_000);
    const polls = () => sandbox.control.jobCalls(job.taxpayerId, job.jobId);
    const from = polls();
    await until(() => polls() === from + 5, 20_000);

    sandbox.control.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    const [changedAt, pollsBefore] = [Date.now(), polls()];
    await until(() => count('complete') === watchers, 20_000);
    const toldAfterMs = Date.now() - changedAt;
    expect(count('next')).toBe(2 * watchers);
    expect(polls() - pollsBefore).toBe(1);
    expect(sandbox.control.tokenCalls(job.taxpayerId)).toBe(1);
    const times = sandbox.control
      .requests('refreshJob')
      .filter(({ path }) => path.includes(job.jobId))
      .map(({ receivedAt }) => receivedAt);
    const gaps = times.slice(1).map((time, n) => time - (times[n] ?? 0));
    // Polls are 900 to 1,100 ms apart; a second one within an interval would be a much shorter gap.
    expect(Math.min(...gaps)).toBeGreaterThan(intervalMs / 2);

    for (const socket of sockets) socket.end();
    await until(async () => (await metric(fleet[0] as GatewayProcess, 'gateway_open_streams')) === 0);
    for (const each of fleet) expect(await metric(each, 'gateway_job_watchers')).toBe(0);
    await until(async () => (await handles()).every((now, n) => now <= (handlesBefore[n] ?? 0) + 2));
    const grownMb = (await heaps()).map((now, n) => Math.round((now - (heapsBefore[n] ?? 0)) / 1e6));
    console.log(
      `${watchers} watchers, ${processes} processes, ${kind}: polls ${gaps.map((gap) => `+${gap}`).join(' ')} ms; ` +
        `all told ${toldAfterMs} ms after the end; heap grown by ${grownMb.join(', ')} MB before a collection`,
    );
    expect(Math.max(...grownMb)).toBeLessThan(100);
  }, 90_000);

  it('costs one call per taxpayer and interval to follow taxpayers, and tells all watchers a change within one', async () => {
    const freshMs = 3000;
    await startFleet('records', { TOKEN_FRESH_SECONDS: `${freshMs / 1000}`, TOKEN_BUDGET_PER_HOUR: '0' });
    const taxpayers = sandbox.control.addTaxpayers(5, { status: 'CREATED' });
    await Promise.all(fleet.flatMap((each) => Array.from({ length: 5 }, () => open(each))));
    const query = 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }';
    for (const socket of sockets) {
      for (const id of taxpayers) socket.send({ type: 'subscribe', id, payload: { query, variables: { id } } });
    }
    const all = sockets.length * taxpayers.length;
    await until(() => count('next') === all, 20_000);
    const calls = () => taxpayers.map((id) => sandbox.control.tokenCalls(id));
    expect(calls()).toEqual(taxpayers.map(() => 1));
    await until(() => calls().every((n) => n === 3), 20_000);
    for (const id of taxpayers) sandbox.control.updateTaxpayer(id, { status: 'COMPLETED' });
    await until(() => count('complete') === all, 20_000);
    expect(count('next')).toBe(2 * all);
    expect(calls()).toEqual(taxpayers.map(() => 4));
    for (const each of fleet) expect(await metric(each, 'gateway_record_watchers')).toBe(0);
  }, 90_000);

  it('goes on within one lease when the process that polls is killed', async () => {
    await startFleet('kill', {});
    const job = addJob();
    const [poller, ...others] = fleet as [GatewayProcess, ...GatewayProcess[]];
    sandbox.control.arm({ endpoint: 'refreshJob', times: 1, fault: { gate: 'never' } });
    const called = sandbox.control.whenCalled('refreshJob', sandbox.control.counters().refreshJob + 1);
    subscribe(await open(poller), job);
    await called;
    const waiting = await Promise.all(others.map(open));
    for (const socket of waiting) subscribe(socket, job);
    await poller.kill();
    const killedAt = Date.now();
    await Promise.all(waiting.map((socket) => socket.message(({ type }) => type === 'next')));
    const tookMs = Date.now() - killedAt;
    console.log(`the poller killed, ${kind}: the others went on after ${tookMs} ms`);
    expect(sandbox.control.jobCalls(job.taxpayerId, job.jobId)).toBe(2);
    expect(tookMs).toBeLessThanOrEqual(4000);
    sandbox.control.updateJob(job.taxpayerId, job.jobId, { status: 'failed' });
    await Promise.all(waiting.map((socket) => socket.message(({ type }) => type === 'complete')));
  }, 60_000);
});
