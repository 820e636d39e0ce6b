import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { loadConfig, type UpstreamCredentials } from '../../../src/config/config.js';
import type { JobId, TaxpayerId } from '../../../src/datasources/identifiers.js';
import type { JobView } from '../../../src/datasources/RefreshJobs.js';
import { createLogger } from '../../../src/observability/log.js';
import { Metrics } from '../../../src/observability/Metrics.js';
import { type RunningServices, startServices } from '../../../src/services.js';
import { environmentFor } from '../../support/gateway.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { until } from '../../support/until.js';

const pollMinMs = 100;

describe('the watcher of jobs', () => {
  let sandbox: Sandbox;
  let redis: TestRedis;
  const started: RunningServices[] = [];

  beforeAll(async () => {
    [sandbox, redis] = await Promise.all([
      startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' }),
      startRedis(),
    ]);
  });

  afterAll(async () => {
    await Promise.all([sandbox.stop(), redis.stop()]);
  });

  beforeEach(() => sandbox.control.resetCounters());

  afterEach(async () => {
    sandbox.control.disarmAll();
    await Promise.all(started.splice(0).map((services) => services.stop()));
  });

  /** What one process of the gateway has between its resolvers and the service. */
  async function startProcess(env: Readonly<Record<string, string>> = {}): Promise<RunningServices> {
    const config = loadConfig({
      ...environmentFor(sandbox),
      CACHE_URL: 'memory:',
      JOB_POLL_MIN_MS: String(pollMinMs),
      JOB_POLL_MAX_MS: '400',
      ...env,
    });
    const log = createLogger('error');
    const services = await startServices({
      config,
      upstream: config.upstream as UpstreamCredentials,
      log,
      logDestination: { write: () => {} },
      metrics: new Metrics(),
      tracing: undefined,
    });
    started.push(services);
    return services;
  }

  function addJob(status = 'processing') {
    const { id } = sandbox.control.addTaxpayer({ status: 'AUTHORIZED' });
    const { jobId } = sandbox.control.addJob({ taxpayerId: id, endsAs: null, status });
    return {
      ids: [id as TaxpayerId, jobId as JobId] as const,
      polls: () => sandbox.control.jobCalls(id, jobId),
      become: (next: string) => sandbox.control.updateJob(id, jobId, { status: next }),
    };
  }

  async function statuses(watch: AsyncIterable<JobView>): Promise<string[]> {
    const seen: string[] = [];
    for await (const view of watch) seen.push(view.job.status);
    return seen;
  }

  it('brings the present status, each change, and ends after a terminal one', async () => {
    const { jobWatches } = await startProcess();
    const job = addJob();
    const watch = jobWatches.watch(job.ids);
    expect((await watch.next()).value.job.status).toBe('processing');
    const change = watch.next();
    job.become('completed');
    expect((await change).value.job.status).toBe('completed');
    expect(await watch.next()).toEqual({ value: undefined, done: true });
  });

  it('asks once for a job that has ended', async () => {
    const { jobWatches } = await startProcess();
    const job = addJob('failed');
    expect(await statuses(jobWatches.watch(job.ids))).toEqual(['failed']);
    expect(await statuses(jobWatches.watch(job.ids))).toEqual(['failed']);
    expect(job.polls()).toBe(1);
  });

  it('polls once per interval for many watchers in several processes, and all see the end within one', async () => {
    const job = addJob();
    const env = { CACHE_URL: `${redis.url}/1`, JOB_POLL_MIN_MS: '300', JOB_POLL_MAX_MS: '300' };
    const fleet = await Promise.all([1, 2, 3, 4].map(() => startProcess(env)));
    const watches = fleet.flatMap(({ jobWatches }) => Array.from({ length: 50 }, () => jobWatches.watch(job.ids)));
    const firsts = await Promise.all(watches.map((watch) => watch.next()));
    expect(job.polls()).toBe(1);
    const beganAt = firsts[0]?.value.observedAt as number;
    await until(() => job.polls() === 6);
    job.become('completed');
    const before = job.polls();
    const ends = await Promise.all(watches.map(statuses));
    expect(ends.every((seen) => seen.join() === 'completed')).toBe(true);
    expect(job.polls() - before).toBeLessThanOrEqual(1);
    const times = sandbox.control
      .requests('refreshJob')
      .filter(({ path }) => path.includes(job.ids[1]))
      .map(({ receivedAt }) => receivedAt);
    // Polls are 270 to 330 ms apart; a second one within an interval would show as a shorter gap.
    for (const [n, time] of times.entries()) expect(time - (times[n - 1] ?? beganAt - 300)).toBeGreaterThanOrEqual(200);
  });

  it('waits longer the longer nothing changes', async () => {
    const { jobWatches } = await startProcess({ JOB_POLL_MIN_MS: '40', JOB_POLL_MAX_MS: '640' });
    const job = addJob();
    const watch = jobWatches.watch(job.ids);
    await until(() => job.polls() === 7);
    await watch.return();
    const times = sandbox.control.requests('refreshJob').map(({ receivedAt }) => receivedAt);
    // Half of the time the status has lasted, less the jitter; a busy machine only makes a pause longer.
    for (const [n, time] of times.slice(0, 6).entries()) {
      const lastedMs = time - (times[0] ?? 0);
      expect((times[n + 1] ?? 0) - time).toBeGreaterThanOrEqual(Math.min(500, lastedMs * 0.3));
    }
  });

  it('gives a watcher who joins late what is known, without asking again', async () => {
    const { jobWatches } = await startProcess({ JOB_POLL_MIN_MS: '60000', JOB_POLL_MAX_MS: '60000' });
    const job = addJob();
    await jobWatches.watch(job.ids).next();
    expect((await jobWatches.watch(job.ids).next()).value.job.status).toBe('processing');
    expect(job.polls()).toBe(1);
  });

  it("learns from a query's answer what its own poll has not seen yet", async () => {
    const { jobWatches, jobs } = await startProcess({ JOB_POLL_MIN_MS: '60000', JOB_POLL_MAX_MS: '60000' });
    const job = addJob();
    const early = jobWatches.watch(job.ids);
    const { observedAt } = (await early.next()).value as JobView;
    job.become('completed');
    await until(() => Date.now() > observedAt); // an answer of this very millisecond counts as new
    await jobs.status(...job.ids, 0);
    expect(await statuses(jobWatches.watch(job.ids))).toEqual(['completed']);
    expect(await statuses(early)).toEqual(['completed']);
  });

  it('retries temporary faults silently, no sooner than the service asks', async () => {
    const { jobWatches } = await startProcess();
    const job = addJob();
    const watch = jobWatches.watch(job.ids);
    await watch.next();
    sandbox.control.arm({
      endpoint: 'refreshJob',
      times: 1,
      fault: { status: 429, headers: { 'retry-after': '1' } },
    });
    job.become('completed');
    expect(await statuses(watch)).toEqual(['completed']);
    const [asked = 0, after = 0] = sandbox.control
      .requests('refreshJob')
      .slice(-2)
      .map(({ receivedAt }) => receivedAt);
    expect(after - asked).toBeGreaterThanOrEqual(950);
  });

  it('polls on behalf of its readers in turn, so that one whose calls are refused does not block the others', async () => {
    const { jobWatches, jobs } = await startProcess({ BREAKER_RESET_MS: '60000' });
    const fault = sandbox.control.arm({
      endpoint: 'refreshJob',
      fault: { status: 500 },
    });
    for (let n = 0; n < 5; n += 1) {
      await expect(jobs.status(...addJob().ids, undefined, { holder: 'hostile' })).rejects.toThrow();
    }
    sandbox.control.disarm(fault);
    const job = addJob();
    const hostile = jobWatches.watch(job.ids, { holder: 'hostile' });
    const honest = jobWatches.watch(job.ids, { holder: 'honest' });
    expect((await honest.next()).value.job.status).toBe('processing');
    job.become('completed');
    expect(await statuses(honest)).toEqual(['completed']);
    expect(await statuses(hostile)).toEqual(['completed']);
  });

  it('ends with the error when the service refuses for good, also for a reader who was busy', async () => {
    const { jobWatches } = await startProcess();
    const { ids } = addJob();
    const unknown = 'no-such-job' as JobId;
    await expect(statuses(jobWatches.watch([ids[0], unknown]))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const busy = jobWatches.watch([ids[0], unknown]);
    await until(() => jobWatches.polled === 0);
    await expect(busy.next()).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await busy.next()).toEqual({ value: undefined, done: true });
  });

  it('ends a watch cleanly after its longest time', async () => {
    const { jobWatches } = await startProcess({ JOB_WATCH_MAX_SECONDS: '1' });
    const watch = jobWatches.watch(addJob().ids);
    expect(await statuses(watch)).toEqual(['processing']);
    expect(jobWatches.polled).toBe(0);
  });

  it('polls no more once nobody watches, and leaves no timer', async () => {
    const { jobWatches } = await startProcess();
    const job = addJob();
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    // The first poll opens a connection to the service, whose timers are not the watcher's.
    await jobWatches.watch(addJob('failed').ids).next();
    const before = timers();
    const watches = Array.from({ length: 100 }, () => jobWatches.watch(job.ids));
    await Promise.all(watches.map((watch) => watch.next()));
    expect(jobWatches.polled).toBe(1);
    const waiting = watches.map((watch) => watch.next());
    await Promise.all(watches.map((watch) => watch.return()));
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => ({ value: undefined, done: true })));
    expect(jobWatches.polled).toBe(0);
    await until(() => timers() <= before);
    const polls = job.polls();
    await new Promise((resolve) => setTimeout(resolve, 3 * pollMinMs));
    expect(job.polls()).toBe(polls);
  });

  it('watches nothing any more once stopped', async () => {
    const { jobWatches } = await startProcess();
    const job = addJob();
    const under = jobWatches.watch(job.ids);
    await under.next();
    jobWatches.stop();
    expect(await under.next()).toEqual({ value: undefined, done: true });
    expect(await statuses(jobWatches.watch(addJob().ids))).toEqual([]);
    expect(jobWatches.polled).toBe(0);
  });

  it('settles a query with the first terminal status, or with the last known when the time is up', async () => {
    const { jobWatches, jobs } = await startProcess();
    const job = addJob();
    const present = await jobs.status(...job.ids);
    const { signal } = new AbortController();
    expect((await jobWatches.settle(job.ids, present, { maxMs: 50, signal })).job.status).toBe('processing');
    const settled = jobWatches.settle(job.ids, present, { maxMs: 60_000, signal });
    job.become('completed');
    expect((await settled).job.status).toBe('completed');
    const gone = jobWatches.settle(addJob().ids, present, { maxMs: 60_000, signal: AbortSignal.abort() });
    expect((await gone).job.status).toBe('processing');
    expect(jobWatches.polled).toBe(0);
  });
});
