import { afterEach, describe, expect, it } from '@jest/globals';
import { freePort } from '../../scripts/freePort.js';
import { Metrics } from '../../src/observability/Metrics.js';
import { childrenOf } from '../support/childrenOf.js';
import { postQuery, spawnGateway, startTestGateway } from '../support/gateway.js';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** With a limit, as Prometheus has one: a connection handed to a process that was just killed is answered by nobody. */
const scrape = async (origin: string) =>
  (await fetch(`${origin}/metrics`, { signal: AbortSignal.timeout(10_000) })).text();
/** The value of one series; the labels in the order they are printed. */
const seriesOf = (page: string, series: string) => {
  const line = page.split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
};

describe('Metrics', () => {
  it('name operations by the schema and never by what a client calls them', async () => {
    const { origin, query, sandbox, stop } = await startTestGateway();
    stops.push(stop);
    const [id] = Object.values(sandbox.demo.taxpayerIds);
    await query(`query SsnOf900001234 { mine: taxpayerToken(taxpayerId: "${id}") { status } }`);
    await query(`{ a: taxpayer(id: "${id}") { id } b: taxpayerToken(taxpayerId: "${id}") { status } }`);
    const wait = `refreshJob(taxpayerId: "${id}", jobId: "none", waitSeconds: 1) { status }`;
    await query(`{ ${wait} a: taxpayer(id: "${id}") { id } }`);
    await query(`query { ...F a: taxpayer(id: "${id}") { id } } fragment F on Query { ${wait} }`);
    await query('{ __typename }');
    await query('{ noSuchField900001234 }');
    const page = await scrape(origin);
    expect(seriesOf(page, 'gateway_operations_total{operation="taxpayerToken",outcome="ok"}')).toBe(1);
    expect(seriesOf(page, 'gateway_operations_total{operation="several",outcome="ok"}')).toBe(1);
    // slow on purpose, so that it is told apart from what has to be quick
    expect(seriesOf(page, 'gateway_operations_total{operation="refreshJob",outcome="errors"}')).toBe(2);
    expect(seriesOf(page, 'gateway_operations_total{operation="introspection",outcome="ok"}')).toBe(1);
    expect(seriesOf(page, 'gateway_operations_total{operation="none",outcome="errors"}')).toBe(1);
    expect(page).not.toContain('900001234');
    expect(page).not.toContain(id);
  });

  it('tell how a read was answered and what is left of the token budget', async () => {
    const { origin, query, sandbox, stop } = await startTestGateway({ TOKEN_BUDGET_PER_HOUR: '40' });
    stops.push(stop);
    const read = () => query(`{ taxpayerToken(taxpayerId: "${sandbox.demo.taxpayerIds.authorized}") { status } }`);
    expect(seriesOf(await scrape(origin), 'gateway_token_budget_left')).toBe(40);
    await read();
    await read();
    await read();
    const page = await scrape(origin);
    expect(seriesOf(page, 'gateway_cache_reads_total{kind="token",tier="fetched",reason="absent"}')).toBe(1);
    expect(seriesOf(page, 'gateway_cache_reads_total{kind="token",tier="memory",reason="held"}')).toBe(2);
    expect(seriesOf(page, 'gateway_token_budget_left')).toBe(39);
    expect(seriesOf(page, 'gateway_token_budget_per_hour')).toBe(40);
    expect(seriesOf(page, 'gateway_upstream_calls_total{endpoint="taxpayerToken",outcome="ok"}')).toBe(1);
    expect(seriesOf(page, 'gateway_errors_total{code="UPSTREAM_TIMEOUT"}')).toBe(0);
  });

  it('show refused credentials and an open breaker', async () => {
    const { origin, query, sandbox, stop } = await startTestGateway();
    stops.push(stop);
    sandbox.control.setClientSecret('another');
    await query(`{ taxpayerToken(taxpayerId: "${sandbox.demo.taxpayerIds.authorized}") { status } }`);
    const page = await scrape(origin);
    const silenced = 'gateway_calls_silenced_total{endpoint="taxpayerToken",reason="credentials-rejected"}';
    expect(seriesOf(page, silenced)).toBe(1);
    expect(seriesOf(page, 'gateway_breaker_open{endpoint="taxpayerToken"}')).toBe(0);
    expect(seriesOf(page, 'gateway_errors_total{code="UPSTREAM_CREDENTIALS_REJECTED"}')).toBe(1);
  });

  it('show the worker that is held up, not the average of all', async () => {
    const metrics = await new Metrics().registry.getMetricsAsJSON();
    const lag = metrics.find(({ name }) => name === 'nodejs_eventloop_lag_p99_seconds');
    expect(lag?.aggregator).toBe('max');
  });

  it('are on METRICS_PORT alone when that is set', async () => {
    const port = await freePort();
    const { origin, stop } = await startTestGateway({ METRICS_PORT: String(port) });
    stops.push(stop);
    expect((await fetch(`${origin}/metrics`)).status).toBe(404);
    expect(await scrape(`http://127.0.0.1:${port}`)).toContain('gateway_requests_total');
    expect((await fetch(`http://127.0.0.1:${port}/graphql`)).status).toBe(404);
  });

  it.each([
    ['PORT', undefined],
    ['METRICS_PORT', true],
  ])(
    'on %s are those of all workers, also after one died',
    async (_, separate) => {
      const port = separate && (await freePort());
      const gateway = await spawnGateway({ PORT: '0', WORKERS: '2', ...(port && { METRICS_PORT: String(port) }) });
      stops.push(gateway.stop);
      const page = () => scrape(port ? `http://127.0.0.1:${port}` : gateway.origin);
      for (let n = 0; n < 6; n++) await postQuery(gateway.origin, '{ __typename }', {}, { connection: 'close' });
      const answered = 'gateway_operations_total{operation="introspection",outcome="ok"}';
      expect(seriesOf(await page(), answered)).toBe(6);
      expect(seriesOf(await page(), 'gateway_workers')).toBe(2);

      const [worker = 0] = await childrenOf(gateway.pid);
      process.kill(worker, 'SIGKILL');
      const isReplaced = (text: string) =>
        seriesOf(text, 'gateway_worker_deaths_total') === 1 && seriesOf(text, 'gateway_workers') === 2;
      let text = '';
      // ends with the test at the latest, which takes the gateway away
      while (!isReplaced(text) && stops.length > 0) text = await page().catch(() => '');
      expect(seriesOf(text, answered)).toBe(6);
    },
    120_000,
  );
});
