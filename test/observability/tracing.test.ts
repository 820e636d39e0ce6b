import { afterEach, describe, expect, it } from '@jest/globals';
import { tracerProvider } from '../../src/observability/Tracing.js';
import { type CollectedSpan, startCollector } from '../support/collector.js';
import { freePort } from '../support/freePort.js';
import { startTestGateway } from '../support/gateway.js';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  for (const name of standardVariables.splice(0)) delete process.env[name];
});

const standardVariables: string[] = [];
/** Sets `OTEL_` variables, which the SDK reads by itself, for one test. */
function setStandard(variables: Readonly<Record<string, string>>): void {
  standardVariables.push(...Object.keys(variables));
  Object.assign(process.env, variables);
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const callersSpan = '00f067aa0ba902b7';

/** Runs one query through a traced gateway and gives the spans, which are complete once it has stopped. */
async function spansOf(headers: Record<string, string>) {
  const collector = await startCollector();
  stops.push(collector.stop);
  const { query, sandbox, stop } = await startTestGateway({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  const { taxpayerId, jobId } = sandbox.demo.jobs.completed;
  await query(
    `query OfMine { refreshJob(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { name status } }`,
    {},
    { tracestate: 'vendor=1', baggage: 'user=planted-baggage', ...headers },
  );
  const seenByService = sandbox.control.requests();
  await stop();
  return { ...collector, seenByService, taxpayerId, jobId };
}

const named = (spans: readonly CollectedSpan[], name: string) => {
  const span = spans.find((one) => one.name === name);
  if (span === undefined) throw new Error(`no span ${name} among ${spans.map((one) => one.name)}`);
  return span;
};

describe('Traces', () => {
  it("continue the caller's trace from HTTP to the operation, the service and the store", async () => {
    const { spans, requests } = await spansOf({ traceparent: `00-${traceId}-${callersSpan}-01` });
    expect(requests[0]?.url).toBe('/v1/traces');
    const http = named(spans, 'POST /graphql');
    const operation = named(spans, 'graphql refreshJob');
    expect(http).toMatchObject({ traceId, parentSpanId: callersSpan, kind: 2 });
    expect(operation).toMatchObject({ traceId, parentSpanId: http.spanId });
    for (const name of ['service taxpayerToken', 'service refreshJob', 'store acquire', 'store settle']) {
      expect(named(spans, name)).toMatchObject({ traceId, parentSpanId: operation.spanId, kind: 3 });
    }
    for (const span of spans) {
      expect(Number(span.endTimeUnixNano)).toBeGreaterThanOrEqual(Number(span.startTimeUnixNano));
    }
    expect(Number(operation.startTimeUnixNano)).toBeLessThanOrEqual(
      Number(named(spans, 'service refreshJob').startTimeUnixNano),
    );
  });

  it('never reach the service, whose requests stay exactly per contract', async () => {
    const { seenByService } = await spansOf({ traceparent: `00-${traceId}-${callersSpan}-01` });
    expect(seenByService.length).toBe(2);
    const sent = JSON.stringify(seenByService);
    for (const trace of ['traceparent', 'tracestate', 'baggage', traceId]) expect(sent).not.toContain(trace);
  });

  it('hold no id, name or token', async () => {
    const { requests, taxpayerId, jobId } = await spansOf({ authorization: 'Bearer caller-token-not-real' });
    const sent = requests.map(({ body }) => body).join();
    for (const secret of [taxpayerId, jobId, 'OfMine', 'not-real', 'not real', 'test-client', 'planted-baggage']) {
      expect(sent).not.toContain(secret);
    }
  });

  it('begin anew without a usable traceparent', async () => {
    const { spans } = await spansOf({ traceparent: `00-${'0'.repeat(32)}-${callersSpan}-01` });
    const http = named(spans, 'POST /graphql');
    expect(http.traceId).toMatch(/^(?!0{32})[0-9a-f]{32}$/);
    expect(http.parentSpanId).toBeUndefined();
  });

  it('are not recorded when the caller decided so', async () => {
    expect((await spansOf({ traceparent: `00-${traceId}-${callersSpan}-00` })).spans).toEqual([]);
  });

  it('are sent and described as the standard variables say', async () => {
    setStandard({
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=blue',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_SERVICE_NAME: 'edge',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging',
    });
    const { spans, requests } = await spansOf({});
    expect(spans.length).toBeGreaterThan(0);
    expect(requests[0]?.headers).toMatchObject({ 'x-tenant': 'blue', 'content-encoding': 'gzip' });
    expect(requests[0]?.body).toContain('{"key":"service.name","value":{"stringValue":"edge"}}');
    expect(requests[0]?.body).toContain('{"key":"deployment.environment.name","value":{"stringValue":"staging"}}');
  });

  it('are sampled as OTEL_TRACES_SAMPLER says', async () => {
    setStandard({ OTEL_TRACES_SAMPLER: 'parentbased_always_off' });
    expect((await spansOf({})).spans).toEqual([]);
    expect((await spansOf({ traceparent: `00-${traceId}-${callersSpan}-01` })).spans).not.toEqual([]);
  });

  it('wait for the collector in a bounded number; the others are dropped and counted', async () => {
    setStandard({ OTEL_EXPORTER_OTLP_TIMEOUT: '500' });
    let dropped = 0;
    const provider = tracerProvider({
      endpoint: `http://127.0.0.1:${await freePort()}`,
      version: 'test',
      onDropped: (count) => {
        dropped += count;
      },
    });
    stops.push(() => provider.shutdown().catch(() => {}));
    const tracer = provider.getTracer('test');
    for (let n = 0; n < 5000; n += 1) tracer.startSpan('one').end();
    expect(dropped).toBe(5000 - 4096);
  });

  it('cost no request anything when the collector is away, and say so in a metric', async () => {
    setStandard({ OTEL_EXPORTER_OTLP_TIMEOUT: '1000' });
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    const { origin, query, stop } = await startTestGateway({ OTEL_EXPORTER_OTLP_ENDPOINT: nowhere });
    stops.push(stop);
    expect((await query('{ __typename }')).status).toBe(200);
    let dropped = 0;
    while (dropped === 0 && stops.length > 0) {
      const page = await (await fetch(`${origin}/metrics`)).text();
      dropped = Number(/^gateway_trace_spans_dropped_total (\d+)$/m.exec(page)?.[1]);
    }
    expect(dropped).toBe(2);
  });
});
