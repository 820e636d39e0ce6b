import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { loadConfig, type UpstreamCredentials } from '../../../src/config/config.js';
import type { TaxpayerId } from '../../../src/datasources/identifiers.js';
import type { TokenView } from '../../../src/datasources/tokenAnswer.js';
import { createLogger } from '../../../src/observability/log.js';
import { Metrics } from '../../../src/observability/Metrics.js';
import { type RunningServices, startServices } from '../../../src/services.js';
import { environmentFor } from '../../support/gateway.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { until } from '../../support/until.js';

const hour = 3_600_000;

describe('the watcher of token records', () => {
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

  afterEach(async () => {
    sandbox.control.disarmAll();
    await Promise.all(started.splice(0).map((services) => services.stop()));
  });

  /** What one process of the gateway has between its resolvers and the service. */
  async function startProcess(
    env: Readonly<Record<string, string>> = {},
    metrics = new Metrics(),
  ): Promise<RunningServices> {
    const config = loadConfig({ ...environmentFor(sandbox), CACHE_URL: 'memory:', TOKEN_FRESH_SECONDS: '1', ...env });
    const log = createLogger('error');
    const services = await startServices({
      config,
      upstream: config.upstream as UpstreamCredentials,
      log,
      logDestination: { write: () => {} },
      metrics,
      tracing: undefined,
    });
    started.push(services);
    return services;
  }

  function addTaxpayer(status = 'CREATED') {
    const id = sandbox.control.addTaxpayer({ status, createdAt: new Date().toISOString() }).id as TaxpayerId;
    return {
      id,
      calls: () => sandbox.control.tokenCalls(id),
      become: (next: string) => sandbox.control.updateTaxpayer(id, { status: next }),
    };
  }

  async function statuses(watch: AsyncIterable<TokenView>): Promise<string[]> {
    const seen: string[] = [];
    for await (const view of watch) seen.push(view.record.status);
    return seen;
  }

  it('brings the record as it is, each change, and ends after a final status', async () => {
    const { recordWatches } = await startProcess();
    const taxpayer = addTaxpayer();
    const watch = recordWatches.watch(taxpayer.id);
    expect((await watch.next()).value).toMatchObject({ record: { status: 'CREATED' }, stale: false });
    taxpayer.become('AUTHORIZED');
    expect((await watch.next()).value.record.status).toBe('AUTHORIZED');
    sandbox.control.updateTaxpayer(taxpayer.id, { name: 'A new name' });
    expect((await watch.next()).value.record).toMatchObject({ status: 'AUTHORIZED', name: 'A new name' });
    taxpayer.become('COMPLETED');
    expect(await statuses(watch)).toEqual(['COMPLETED']);
    expect(recordWatches.polled).toBe(0);
  });

  it('brings at once what a job of this process found out', async () => {
    const { recordWatches, jobs, ids } = await startProcess({ TOKEN_FRESH_SECONDS: '3600' });
    const taxpayer = addTaxpayer('TAX_AUTHORIZATION_SUBMITTED');
    const { jobId } = sandbox.control.addJob({ taxpayerId: taxpayer.id, endsAs: null });
    const watch = recordWatches.watch(taxpayer.id);
    expect((await watch.next()).value.record.status).toBe('TAX_AUTHORIZATION_SUBMITTED');
    taxpayer.become('AUTHORIZED');
    sandbox.control.rotateToken(taxpayer.id);
    await jobs.status(taxpayer.id, ids.jobId(jobId));
    expect((await watch.next()).value.record.status).toBe('AUTHORIZED');
    expect(taxpayer.calls()).toBe(2);
    await watch.return();
  });

  it('says nothing of a token that was replaced by itself', async () => {
    const { recordWatches } = await startProcess();
    const taxpayer = addTaxpayer();
    const watch = recordWatches.watch(taxpayer.id);
    await watch.next();
    sandbox.control.rotateToken(taxpayer.id);
    const before = taxpayer.calls();
    await until(() => taxpayer.calls() === before + 2);
    taxpayer.become('REJECTED');
    expect(await statuses(watch)).toEqual(['REJECTED']);
  });

  it('costs one call per interval for many watchers in several processes, and all see a change within one', async () => {
    const taxpayer = addTaxpayer();
    const fleet = await Promise.all([1, 2, 3, 4].map(() => startProcess({ CACHE_URL: `${redis.url}/1` })));
    const watches = fleet.flatMap(({ recordWatches }) =>
      Array.from({ length: 50 }, () => recordWatches.watch(taxpayer.id)),
    );
    await Promise.all(watches.map((watch) => watch.next()));
    expect(taxpayer.calls()).toBe(1);
    await until(() => taxpayer.calls() === 4);
    taxpayer.become('COMPLETED');
    const ends = await Promise.all(watches.map(statuses));
    expect(ends.every((seen) => seen.join() === 'COMPLETED')).toBe(true);
    expect(taxpayer.calls()).toBe(5);
    const times = sandbox.control
      .requests('taxpayerToken')
      .filter(({ path }) => path.includes(taxpayer.id))
      .map(({ receivedAt }) => receivedAt);
    // A record is fresh for a second from its answer on.
    for (const [n, time] of times.slice(1).entries()) expect(time - (times[n] ?? 0)).toBeGreaterThanOrEqual(950);
  });

  it('shows a record as stale to those who come while the service is down, and says nothing to the others', async () => {
    const { recordWatches } = await startProcess({ BREAKER_RESET_MS: '100' });
    const taxpayer = addTaxpayer();
    const early = recordWatches.watch(taxpayer.id);
    expect((await early.next()).value.stale).toBe(false);
    sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { status: 503 } });
    let late = recordWatches.watch(taxpayer.id);
    await until(async () => {
      void late.return();
      late = recordWatches.watch(taxpayer.id);
      return (await late.next()).value.stale;
    }, 10_000);
    sandbox.control.disarmAll();
    expect((await late.next()).value).toMatchObject({ record: { status: 'CREATED' }, stale: false });
    taxpayer.become('COMPLETED');
    expect(await statuses(early)).toEqual(['COMPLETED']);
  }, 20_000);

  it('starts with a stale record from the store while the service is down', async () => {
    const env = { CACHE_URL: `${redis.url}/2`, BREAKER_RESET_MS: '100' };
    const taxpayer = addTaxpayer();
    const [before, after] = await Promise.all([startProcess(env), startProcess(env)]);
    const { fetchedAt } = await before.broker.record(taxpayer.id);
    await until(() => Date.now() > fetchedAt + 1000);
    sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { status: 503 } });
    const watch = after.recordWatches.watch(taxpayer.id);
    expect((await watch.next()).value).toMatchObject({ stale: true, fetchedAt });
    sandbox.control.disarmAll();
    expect((await watch.next()).value.stale).toBe(false);
  }, 20_000);

  it('ends with the error when the service knows no such taxpayer', async () => {
    const { recordWatches } = await startProcess();
    const watch = recordWatches.watch('no-such-taxpayer' as TaxpayerId);
    await expect(statuses(watch)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(recordWatches.polled).toBe(0);
  });

  it('waits quietly for a record that is fresh for longer than a timer can run', async () => {
    const metrics = new Metrics();
    const { recordWatches } = await startProcess({ TOKEN_FRESH_SECONDS: '2592000' }, metrics);
    await recordWatches.watch(addTaxpayer().id).next();
    const reads = () => metricOf(metrics, 'gateway_cache_reads_total{kind="token",tier="memory"');
    const before = await reads();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await reads()).toBe(before);
  });

  describe('in virtual time', () => {
    beforeEach(() => {
      const now = Math.ceil(Date.now() / hour) * hour; // an hour of the budget begins
      const ofTheLoop = ['performance', 'setImmediate', 'nextTick', 'queueMicrotask', 'hrtime'] as const;
      // What the process does now and then is not to come between two polls.
      jest.useFakeTimers({ now, doNotFake: [...ofTheLoop, 'setInterval', 'clearInterval'] });
    });
    afterEach(() => {
      jest.useRealTimers();
    });

    /** Lets the service answer until `isDone`. */
    async function answered(isDone: () => boolean): Promise<void> {
      for (let turn = 0; turn < 5000 && !isDone(); turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }

    it('costs at most 115 calls in a month without a change, and finds one within a tenth of the time before it', async () => {
      const { recordWatches, broker } = await startProcess({
        TOKEN_FRESH_SECONDS: '',
        JOB_WATCH_MAX_SECONDS: '604800',
      });
      const taxpayer = addTaxpayer();
      const began = Date.now();
      let latest: TokenView | undefined;
      let watching = false;
      const follow = async () => {
        watching = true;
        for await (const view of recordWatches.watch(taxpayer.id)) latest = view;
        watching = false;
      };
      /** On to the next poll, or to the end of the watch. */
      const next = async () => {
        if (!watching) void follow();
        await answered(() => broker.held(taxpayer.id) !== undefined && latest !== undefined);
        const calls = taxpayer.calls();
        jest.advanceTimersToNextTimer();
        await answered(() => !watching || (taxpayer.calls() > calls && broker.held(taxpayer.id) !== undefined));
      };
      while (Date.now() < began + 30 * 24 * hour) await next();
      const calls = taxpayer.calls();
      taxpayer.become('AUTHORIZED');
      const changed = Date.now();
      while (latest?.record.status !== 'AUTHORIZED') await next();
      const lagMs = Date.now() - changed;
      expect(calls).toBeGreaterThan(90);
      expect(calls).toBeLessThanOrEqual(115);
      expect(lagMs).toBeLessThanOrEqual((changed - began) / 10 + 60_000);
    }, 60_000);

    it('waits for the next hour when the share of watchers is spent, says nothing, and leaves the rest to queries', async () => {
      const metrics = new Metrics();
      const budget = { TOKEN_BUDGET_PER_HOUR: '16', TOKEN_BUDGET_WATCH_SHARE: '0.5' };
      const env = { TOKEN_FRESH_SECONDS: '60', JOB_WATCH_MAX_SECONDS: '7200', ...budget };
      const { recordWatches, broker } = await startProcess(env, metrics);
      const taxpayer = addTaxpayer();
      const seen: string[] = [];
      void (async () => {
        for await (const { record } of recordWatches.watch(taxpayer.id)) seen.push(record.status);
      })();
      await answered(() => seen.length === 1);
      const spent = () => metricOf(metrics, 'gateway_token_events_total{event="watch-share-exhausted"');
      const beganAt = Date.now();
      while ((await spent()) === 0) {
        jest.advanceTimersToNextTimer();
        await answered(() => broker.held(taxpayer.id) !== undefined);
      }
      expect(taxpayer.calls()).toBe(8);
      taxpayer.become('COMPLETED');
      for (let others = 0; others < 7; others += 1) await broker.record(addTaxpayer().id);
      expect(seen).toEqual(['CREATED']);
      expect(Date.now() - beganAt).toBeLessThan(hour);
      // Other timers of the process may come before that of the watch.
      for (let timers = 0; timers < 10 && seen.length < 2; timers += 1) {
        jest.advanceTimersToNextTimer();
        await answered(() => seen.length === 2);
      }
      expect(seen).toEqual(['CREATED', 'COMPLETED']);
      expect(Date.now() - beganAt).toBeGreaterThanOrEqual(hour);
    }, 60_000);

    it('tells of what a query in the same process brought, without waiting for its own poll', async () => {
      const { recordWatches, broker } = await startProcess({ TOKEN_FRESH_SECONDS: '900' });
      const taxpayer = addTaxpayer();
      const watch = recordWatches.watch(taxpayer.id);
      await watch.next();
      jest.advanceTimersByTime(61_000);
      taxpayer.become('COMPLETED');
      await broker.record(taxpayer.id, 60_000);
      expect(await statuses(watch)).toEqual(['COMPLETED']);
      expect(taxpayer.calls()).toBe(2);
    });
  });

  async function metricOf(metrics: Metrics, line: string): Promise<number> {
    const found = (await metrics.registry.metrics()).split('\n').find((each) => each.startsWith(line));
    return Number(found?.split(' ').at(-1) ?? 0);
  }
});
