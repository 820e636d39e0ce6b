import { subscribe } from 'node:diagnostics_channel';
import { jest } from '@jest/globals';
import { rateLimited } from '../../../src/admission/Places.js';
import { LeasedCache } from '../../../src/cache/LeasedCache.js';
import { identifiers, type JobId, type TaxpayerId } from '../../../src/datasources/identifiers.js';
import { jobKey } from '../../../src/datasources/RefreshJobs.js';
import { startAgents } from '../../../src/network/agents.js';
import { Metrics } from '../../../src/observability/Metrics.js';
import { type RunningServices, startServices } from '../../../src/services.js';
import { maxTries } from '../../../src/upstream/ResilientFetch.js';
import { untilEnd } from '../../support/atEnd.js';
import { type Bounds, configWith, type Environment, environmentFor } from '../../support/gateway.js';
import { recordedLog } from '../../support/recordedLog.js';
import { startSandbox } from '../../support/sandbox.js';
import { times } from '../../support/times.js';

const hour = 3_600_000;

let running: RunningServices;
let metrics: Metrics;
/** Calls to the service that it has not answered. */
let underWay = 0;
subscribe('http.client.request.start', () => {
  underWay += 1;
});
subscribe('http.client.response.finish', () => {
  underWay -= 1;
});

const sandbox = await startSandbox();
const { log } = recordedLog();
beforeEach(() => {
  underWay = 0; // calls that a test before left behind have no end
  sandbox.resetCounters();
  // Timers are ours, so that nothing waits; the sockets to the service are real.
  jest.useFakeTimers({
    now: Math.ceil(Date.now() / hour) * hour,
    doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'hrtime', 'setInterval', 'clearInterval'],
  });
});
afterEach(async () => {
  jest.useRealTimers();
  sandbox.disarmAll();
  await running.stop();
});

/** What one process of the gateway has between its resolvers and the service. */
async function start(env: Environment = {}, bounds: Bounds = {}): Promise<RunningServices> {
  const config = configWith(bounds, { ...environmentFor(sandbox), ...env });
  metrics = new Metrics();
  running = await startServices({
    config,
    log,
    metrics,
    agents: startAgents(config),
    stopped: untilEnd(),
  });
  return running;
}

/** Lets the service answer until `isDone` or, at the latest, until it has nothing left to answer. */
async function answered(isDone = () => false) {
  let idleTurns = 0;
  while (idleTurns < 500 && !isDone()) {
    await new Promise(setImmediate);
    idleTurns = underWay > 0 ? 0 : idleTurns + 1;
  }
}

/** Lets time pass from timer to timer, with answers between, until `isDone`. */
async function pass(isDone: () => boolean) {
  await answered(isDone);
  for (let timers = 0; timers < 200 && !isDone(); timers += 1) {
    jest.advanceTimersToNextTimer();
    await answered(isDone);
  }
  expect(isDone()).toBe(true);
}

/** What a watch has brought so far: words of its views, then `end` or the code of its error. */
function follow<View>(watch: AsyncIterable<View>, wordOf: (view: View) => string) {
  const seen: string[] = [];
  void (async () => {
    try {
      for await (const view of watch) seen.push(wordOf(view));
      seen.push('end');
    } catch (error) {
      seen.push((error as { readonly code: string }).code);
    }
  })();
  return seen;
}

describe('Watchers of a job', () => {
  function addJob() {
    const { id } = sandbox.addTaxpayer({ status: 'AUTHORIZED' });
    const { jobId } = sandbox.addJob({ taxpayerId: id, durationMs: Infinity });
    return {
      ids: [id as TaxpayerId, jobId as JobId] as const,
      polls: () => sandbox.jobCalls(id, jobId),
      become: (next: string) => sandbox.updateJob(id, jobId, { status: next }),
    };
  }
  const watch = (job: ReturnType<typeof addJob>, holder?: string) =>
    follow(running.jobs.watches.watch(jobKey(...job.ids), { holder }), ({ value }) => value.job.status);
  const arrivals = () => sandbox.requests('refreshJob').map(({ receivedAt }) => receivedAt);

  it('are told of each change and of the end, and polled for the more seldom the longer nothing changes', async () => {
    await start({ JOB_POLL_MIN_MS: '1000', JOB_POLL_MAX_MS: '60000' });
    const job = addJob();
    const seen = watch(job);
    await pass(() => job.polls() === 16); // beyond half a minute, the default
    const [began = 0, ...later] = arrivals();
    let previous = began;
    for (const time of later) {
      const due = Math.min(60_000, Math.max(1000, (previous - began) / 2));
      expect(time - previous).toBeGreaterThanOrEqual(0.9 * due - 1);
      expect(time - previous).toBeLessThanOrEqual(1.1 * due + 1);
      previous = time;
    }
    job.become('failed');
    await pass(() => seen.includes('end'));
    expect(seen).toEqual(['processing', 'failed', 'end']);
    expect(job.polls()).toBe(17);
    expect([running.jobs.watches.polled, jest.getTimerCount()]).toEqual([0, 0]); // neither polls nor timers
  });

  it('who join late get what is known, and tell those before what a query has found out', async () => {
    const { jobs } = await start({ JOB_POLL_MIN_MS: '60000', JOB_POLL_MAX_MS: '60000' });
    const job = addJob();
    const early = watch(job);
    await answered(() => early.length === 1);
    jest.advanceTimersByTime(1500);
    const late = watch(job, 'another');
    await answered(() => job.polls() === 2); // as it would be, were it polled for
    expect([late, job.polls()]).toEqual([['processing'], 1]);
    job.become('completed');
    await jobs.status(...job.ids);
    const last = watch(job);
    await answered(() => [early, late, last].every((seen) => seen.includes('end')));
    expect([early, late]).toEqual(Array(2).fill(['processing', 'completed', 'end']));
    expect(last).toEqual(['completed', 'end']);
    expect(job.polls()).toBe(2);
  });

  it('hear nothing of passing faults, and no poll is made sooner than the service asks', async () => {
    await start();
    for (const status of [429, 503]) {
      const job = addJob();
      const seen = watch(job);
      await answered(() => seen.length === 1);
      const fault = { status, headers: { 'retry-after': '100' } };
      sandbox.arm({ endpoint: 'refreshJob', times: 1, fault });
      job.become('completed');
      await pass(() => job.polls() === 2);
      await answered();
      jest.advanceTimersByTime(3000);
      const late = watch(job);
      await pass(() => seen.includes('end') && late.includes('end'));
      expect([seen, late]).toEqual(Array(2).fill(['processing', 'completed', 'end']));
      const [asked = 0, after = 0] = arrivals().slice(-2);
      expect(after - asked).toBeGreaterThanOrEqual(100_000);
    }
  });

  it('who come after an outage do not wait as long as those who saw it', async () => {
    await start({ JOB_POLL_MAX_MS: '60000' });
    const job = addJob();
    sandbox.arm({ endpoint: 'refreshJob', fault: { status: 500 } });
    const beganAt = Date.now();
    const early = watch(job);
    await pass(() => job.polls() === 6 * maxTries); // the next poll comes in a minute
    expect(Date.now() - beganAt).toBeGreaterThan(12_000);
    await answered();
    sandbox.disarmAll();
    const polls = job.polls();
    jest.advanceTimersByTime(500);
    const late = watch(job);
    await answered();
    expect(job.polls()).toBe(polls);
    jest.advanceTimersByTime(1700); // with those before, the first pause after a failure and its jitter
    await answered(() => late.length === 1);
    expect([early, late, job.polls()]).toEqual([['processing'], ['processing'], polls + 1]);
  });

  it('who join together cost their caller one poll, however many they are, and others none', async () => {
    const reads = jest.spyOn((await start()).jobs, 'status');
    const job = addJob();
    sandbox.arm({ endpoint: 'refreshJob', times: 1, fault: { gate: 'held' } });
    const all = times(1200, () => watch(job, 'one')); // more than may wait for a place
    await answered(() => job.polls() === 1);
    sandbox.release('held');
    await answered(() => all.every((seen) => seen.length === 1));
    expect(all).toEqual(Array(1200).fill(['processing']));
    expect(job.polls()).toBe(1);
    reads.mockReturnValueOnce(new Promise(() => {}));
    reads.mockRejectedValue(rateLimited('', { onlyFor: { holder: 'two' } }));
    const other = addJob();
    for (const holder of ['one', 'two']) watch(other, holder);
    await answered();
    expect(reads).toHaveBeenCalledTimes(3);
  });

  it('are not held up by watchers whose own calls are refused', async () => {
    const { jobs } = await start({ BREAKER_RESET_MS: '600000' });
    sandbox.arm({ endpoint: 'refreshJob', fault: { status: 500 } });
    for (let n = 0; n < 5; n += 1) {
      const failed = jobs.status(...addJob().ids, { holder: 'hostile' }) as Promise<unknown>;
      let isOver = false;
      failed.catch(() => {}).finally(() => (isOver = true));
      await pass(() => isOver);
    }
    sandbox.disarmAll();
    const job = addJob();
    const hostile = [watch(job, 'hostile'), watch(job, 'hostile')];
    await answered();
    expect(hostile).toEqual([[], []]); // their breaker is open
    void running.jobs.watches.watch(jobKey(...job.ids), { holder: 'gone' }).return();
    const beganAt = Date.now();
    const honest = watch(job, 'honest');
    await answered(() => honest.length === 1);
    jest.spyOn(jobs.cache, 'inMemory').mockReturnValueOnce(undefined); // evicted from memory
    jest.spyOn(jobs, 'status').mockRejectedValueOnce(rateLimited('', { onlyFor: { holder: 'hostile' } }));
    hostile.push(watch(job, 'hostile'));
    await answered();
    expect(hostile[2]).toEqual(['processing']);
    expect(Date.now()).toBe(beganAt); // no timer had to run
    sandbox.arm({ endpoint: 'refreshJob', fault: { status: 429, headers: { 'retry-after': '1' } } });
    await pass(() => job.polls() > 5); // the next poll comes in many seconds
    sandbox.disarmAll();
    job.become('completed');
    for (let n = 0; n < 20; n += 1) {
      jest.advanceTimersByTime(1500);
      void watch(job, 'hostile');
      await answered();
    }
    expect([...hostile, honest]).toEqual(Array(4).fill(['processing', 'completed', 'end']));
    const alone = watch(addJob(), 'hostile');
    await pass(() => alone[0] === 'processing');
  });

  it('are not held up by watchers whose own calls have to wait', async () => {
    const { jobs } = await start();
    const [job, others] = [addJob(), addJob()];
    await jobs.status(...others.ids);
    const [taxpayerId] = others.ids;
    sandbox.arm({ endpoint: 'refreshJob', taxpayerId, fault: { gate: 'held' } });
    const reads = times(33, async (n) => jobs.status(taxpayerId, `made-up-${n}` as JobId, { holder: 'busy' }, 0));
    const busy = watch(job, 'busy');
    const honest = watch(job, 'honest');
    await answered(() => honest.length === 1);
    job.become('completed');
    jest.advanceTimersByTime(3000); // beyond the next poll
    await answered(() => honest.length === 3);
    expect([busy, honest]).toEqual(Array(2).fill(['processing', 'completed', 'end']));
    sandbox.disarmAll();
    sandbox.release('held');
    await expect(Promise.any(reads)).rejects.toThrow(); // there are no such jobs
  });
});

describe('Watchers of a record', () => {
  function addTaxpayer(status = 'CREATED') {
    const id = sandbox.addTaxpayer({ status, createdAt: new Date().toISOString() }).id as TaxpayerId;
    return {
      id,
      calls: () => sandbox.tokenCalls(id),
      become: (next: string) => sandbox.updateTaxpayer(id, { status: next }),
    };
  }
  const watch = (id: TaxpayerId) =>
    follow(running.broker.watches.watch(id), ({ value, stale }) => value.record.status + (stale ? ', stale' : ''));

  it('are told at once what a job of the process found out, and nothing of a token that was replaced by itself', async () => {
    const { jobs } = await start({ TOKEN_FRESH_SECONDS: '3600' });
    const taxpayer = addTaxpayer();
    const { jobId } = sandbox.addJob({ taxpayerId: taxpayer.id, durationMs: Infinity });
    const seen = watch(taxpayer.id);
    await answered(() => seen.length === 1);
    const readJob = () => jobs.status(taxpayer.id, identifiers.jobId(jobId));
    for (const status of ['CREATED', 'AUTHORIZED']) {
      taxpayer.become(status);
      sandbox.rotateToken(taxpayer.id);
      jest.advanceTimersByTime(60_001);
      await readJob();
    }
    await answered(() => seen.length === 2);
    expect(seen).toEqual(['CREATED', 'AUTHORIZED']);
    expect(taxpayer.calls()).toBe(3);
  });

  it('hear nothing that was asked for before the record was forgotten', async () => {
    const { jobs, forgets } = await start();
    const taxpayer = addTaxpayer();
    const { jobId } = sandbox.addJob({ taxpayerId: taxpayer.id, durationMs: Infinity });
    const seen = watch(taxpayer.id);
    await answered(() => seen.length === 1);
    taxpayer.become('CONSENT_RECEIVED');
    sandbox.rotateToken(taxpayer.id);
    jest.advanceTimersByTime(1); // what is fetched from now on is newer
    sandbox.arm({ endpoint: 'taxpayerToken', times: 1, fault: { gate: 'late' } });
    const reading = jobs.status(taxpayer.id, identifiers.jobId(jobId));
    await answered(() => taxpayer.calls() === 2);
    forgets.forgetAll();
    jest.advanceTimersByTime(1);
    sandbox.release('late');
    await reading;
    await answered();
    expect(seen).toEqual(['CREATED']);
  });

  it('who come after the record was forgotten get nothing that was read or asked for before, and no others what was asked for', async () => {
    const { forgets } = await start({ TOKEN_FRESH_SECONDS: '5' });
    const taxpayer = addTaxpayer();
    const early = watch(taxpayer.id);
    await answered(() => early.length === 1);
    sandbox.arm({ endpoint: 'taxpayerToken', times: 1, fault: { gate: 'late' } });
    jest.advanceTimersByTime(5500);
    await answered(() => taxpayer.calls() === 2); // a poll is under way
    taxpayer.become('CONSENT_RECEIVED');
    await running.sealed.forget({ id: 'request', subject: taxpayer.id });
    forgets.forgetAll();
    const late = watch(taxpayer.id);
    jest.advanceTimersByTime(1);
    await answered(() => late.length > 0);
    sandbox.release('late');
    await answered();
    expect([early, late]).toEqual([['CREATED', 'CONSENT_RECEIVED'], ['CONSENT_RECEIVED']]);
  });

  it('see a stale record if they come while the service is down, and nothing of that if they came before', async () => {
    const { broker } = await start({ TOKEN_FRESH_SECONDS: '60', BREAKER_RESET_MS: '100' });
    const [taxpayer, other] = [addTaxpayer(), addTaxpayer()];
    await broker.record(other.id);
    const early = watch(taxpayer.id);
    await answered(() => early.length === 1);
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 503 } });
    await pass(() => taxpayer.calls() > 24);
    const alone = watch(other.id);
    await pass(() => alone.length === 1);
    const late = watch(taxpayer.id);
    await answered(() => late.length === 1);
    sandbox.disarmAll();
    const endedAt = Date.now();
    await pass(() => late.length === 2);
    expect(Date.now() - endedAt).toBeLessThan(3000);
    const last = watch(taxpayer.id);
    taxpayer.become('COMPLETED');
    await pass(() => [early, late, last].every((seen) => seen.includes('end')));
    expect(late).toEqual(['CREATED, stale', 'CREATED', 'COMPLETED', 'end']);
    expect([early, last]).toEqual(Array(2).fill(['CREATED', 'COMPLETED', 'end']));
  });

  it('do not wait the longer after an outage the more others come and go meanwhile', async () => {
    await start({ TOKEN_FRESH_SECONDS: '60', BREAKER_RESET_MS: '100' }, { watchMaxMs: 2 * hour });
    const taxpayer = addTaxpayer();
    const seen = watch(taxpayer.id);
    await answered(() => seen.length === 1);
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 503 } });
    await pass(() => taxpayer.calls() > maxTries);
    for (let n = 0; n < 40; n += 1) {
      void running.broker.watches.watch(taxpayer.id, { holder: 'other' }).return();
      await answered();
      jest.advanceTimersByTime(500);
      await answered();
    }
    sandbox.disarmAll();
    taxpayer.become('COMPLETED');
    const endedAt = Date.now();
    await pass(() => seen.includes('end'));
    expect(Date.now() - endedAt).toBeLessThan(60_000);
  });

  it('wait for the next hour when their share is spent, hear nothing, and leave the rest to queries', async () => {
    const env = { TOKEN_FRESH_SECONDS: '60', TOKEN_BUDGET_PER_HOUR: '16' };
    const { broker } = await start(env, { watchMaxMs: 2 * hour });
    const taxpayer = addTaxpayer();
    const beganAt = Date.now();
    const seen = watch(taxpayer.id);
    await pass(() => taxpayer.calls() === 8);
    taxpayer.become('COMPLETED');
    for (let others = 0; others < 7; others += 1) await broker.record(addTaxpayer().id);
    expect(Date.now() - beganAt).toBeLessThan(hour);
    await pass(() => seen.includes('end'));
    expect(seen).toEqual(['CREATED', 'COMPLETED', 'end']);
    expect(Date.now() - beganAt).toBeGreaterThanOrEqual(hour);
    expect(taxpayer.calls()).toBe(9);
  });

  it('are refused together, not one after the other, when the share of all is spent', async () => {
    await start({ TOKEN_FRESH_SECONDS: '60', TOKEN_BUDGET_PER_HOUR: '4', TOKEN_BUDGET_CALLER_SHARE: '1' });
    const id = addTaxpayer().id;
    const watches = times(20, (n) => running.broker.watches.watch(id, { holder: `caller-${n}` }));
    for (const each of watches) void each.next();
    const refusals = async () => /event="watch-share-exhausted"} (\d+)/.exec(await metrics.registry.metrics())?.[1];
    await pass(() => sandbox.tokenCalls(id) === 2);
    await answered();
    for (let timers = 0; timers < 50 && (await refusals()) === '0'; timers += 1) {
      jest.advanceTimersToNextTimer();
      await answered();
    }
    expect(await refusals()).toBe('1');
  });

  it('wait quietly for a record that is fresh for longer than a timer can run', async () => {
    await start({ TOKEN_FRESH_SECONDS: '2592000' }, { watchMaxMs: 168 * hour });
    const seen = watch(addTaxpayer().id);
    await answered(() => seen.length === 1);
    const reads = async () => (await metrics.registry.metrics()).match(/^gateway_cache_reads_total.*$/gm);
    const before = await reads();
    jest.advanceTimersByTime(hour);
    await answered(() => seen.length === 2);
    expect(await reads()).toEqual(before);
  });
});

it('What is over is dropped from memory every ten minutes', async () => {
  const [repeat, drop] = [jest.spyOn(globalThis, 'setInterval'), jest.spyOn(LeasedCache.prototype, 'dropExpired')];
  await start();
  for (const [work, everyMs] of repeat.mock.calls) if (everyMs === 600_000) work();
  expect(drop.mock.contexts).toEqual(running.caches);
  jest.restoreAllMocks();
});
