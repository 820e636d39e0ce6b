import { maxTries } from '../../../src/upstream/ResilientFetch.js';
import { atEnd } from '../../support/atEnd.js';
import { type CollectedSpan, startCollector } from '../../support/collector.js';
import {
  type Environment,
  linesWith,
  quickPolls,
  startTestGateway,
  type TestGateway,
  type Texts,
} from '../../support/gateway.js';
import { addJob, watchJob } from '../../support/liveJob.js';
import { rawSocket } from '../../support/rawSocket.js';
import { postEvents } from '../../support/streamReader.js';
import { until } from '../../support/until.js';

/** Sets `OTEL_` variables, which the SDK reads by itself, until the end of the test. */
function setStandard(variables: Texts) {
  Object.assign(process.env, variables);
  atEnd(() => {
    for (const name of Object.keys(variables)) delete process.env[name];
  });
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const callersSpan = '00f067aa0ba902b7';

const caller = { traceparent: `00-${traceId}-${callersSpan}-01` };
/** Names of spans. */
const tokenCall = 'taxpayerToken';
const jobCall = 'refreshJob';

/** Does `work` with a traced gateway and gives the spans, which are complete once it has stopped. */
async function traced(work: (gateway: TestGateway) => Promise<unknown>, env: Environment = {}) {
  const collector = await startCollector();
  const gateway = await startTestGateway({ ...quickPolls, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env });
  await work(gateway);
  await gateway.stop();
  return { ...collector, logs: gateway.logs, seenByService: gateway.sandbox.requests() };
}

const askTypename = ({ query }: TestGateway) => query('{ __typename }');

const spansOf = (headers: Record<string, string>, env: Environment = {}) =>
  traced(({ query, sandbox }) => {
    const { taxpayerId, jobId } = sandbox.demo.jobs.completed;
    const document = `query OfMine { refreshJob(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { name status } }`;
    return query(document, {}, { tracestate: 'vendor=1', baggage: 'user=planted-baggage', ...headers });
  }, env);

const named = (spans: readonly CollectedSpan[], name: string) => {
  const span = spans.find((one) => one.name === name);
  if (span === undefined) throw new Error(`no span ${name} among ${spans.map((one) => one.name)}`);
  return span;
};

describe('Traces', () => {
  it("continue the caller's trace with the request and each call made for it, of which the service sees nothing", async () => {
    const { spans, requests, seenByService } = await spansOf(caller);
    expect(seenByService).toHaveLength(2);
    const sent = JSON.stringify(seenByService);
    for (const trace of ['traceparent', 'tracestate', 'baggage', traceId]) expect(sent).not.toContain(trace);
    expect(requests[0]).toMatchObject({ url: '/v1/traces', headers: { 'content-type': 'application/x-protobuf' } });
    const http = named(spans, 'query refreshJob');
    expect(http).toMatchObject({ traceId, parentSpanId: callersSpan, kind: 2 });
    for (const name of [tokenCall, jobCall]) {
      const call = named(spans, name);
      expect(call).toMatchObject({ traceId, parentSpanId: http.spanId, kind: 3 });
      expect(call.start).toBeGreaterThanOrEqual(http.start);
      expect(call.end).toBeGreaterThanOrEqual(call.start);
      expect(call.end).toBeLessThanOrEqual(http.end);
    }
    expect(Number(http.end) / 1e6).toBeGreaterThan(Date.now() - 60_000);
    expect(Number(http.end) / 1e6).toBeLessThan(Date.now() + 1000);
  });

  it('say which operation it was, what became of it, and whom it called', async () => {
    const { spans, logs } = await spansOf({});
    const { traceId, attributes } = named(spans, 'query refreshJob');
    expect(linesWith(logs, { msg: 'operation' })).toMatchObject([{ traceId }]);
    expect(attributes).toEqual({
      'http.request.method': 'POST',
      'url.path': '/graphql',
      'url.scheme': 'http',
      'http.response.status_code': 200,
      'graphql.operation.type': 'query',
      'gateway.operation': 'refreshJob',
      'gateway.transport': 'http',
      'gateway.outcome': 'ok',
    });
    expect(named(spans, tokenCall).status).toBe(0);
    expect(named(spans, tokenCall).attributes).toEqual({
      'http.request.method': 'GET',
      'server.address': '127.0.0.1',
      'server.port': expect.any(Number),
      'peer.service': 'taxpayer-service',
      'http.response.status_code': 200,
      'gateway.outcome': 'ok',
    });
  });

  it('show an answer that breaks the contract as a failed call', async () => {
    const { spans } = await traced(({ sandbox, query }) => {
      sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 200, body: '{}' } });
      return query('{ taxpayerToken(taxpayerId: "one") { status } }');
    });
    expect(named(spans, tokenCall)).toMatchObject({
      status: 2,
      attributes: { 'http.response.status_code': 200, 'gateway.outcome': 'invalid' },
    });
  });

  it('say what failed and of which kind, once for each try', async () => {
    const { spans } = await traced(async ({ sandbox, query }) => {
      const { id } = sandbox.addTaxpayer({});
      sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 503 } });
      await query(`{ taxpayerToken(taxpayerId: "${id}") { status } }`);
    });
    expect(named(spans, 'query taxpayerToken')).toMatchObject({
      status: 2,
      attributes: { 'error.type': 'UPSTREAM_UNAVAILABLE', 'gateway.codes': ['UPSTREAM_UNAVAILABLE'] },
    });
    const tries = spans.filter(({ name }) => name === tokenCall);
    expect(tries.map(({ status }) => status)).toEqual(Array(maxTries).fill(2));
    const failed = {
      'http.response.status_code': 503,
      'error.type': '503',
      'gateway.outcome': 'server-error',
    };
    expect(tries[0]?.attributes).toMatchObject(failed);
  });

  it("are no errors for what is the caller's mistake, and say nothing of a query string", async () => {
    const { spans, requests } = await traced(({ query, origin }) =>
      Promise.all([
        fetch(`${origin}/graphql?query=planted`),
        query('{ taxpayer(id: " ") { id } }'),
        fetch(`${origin}/nowhere/at-all?ssn=planted`),
      ]),
    );
    expect(spans).toHaveLength(2);
    expect(JSON.stringify(requests)).not.toContain('planted');
    expect(named(spans, 'query taxpayer')).toMatchObject({ status: 0, attributes: { 'gateway.outcome': 'errors' } });
    expect(named(spans, 'refused request')).toMatchObject({
      status: 0,
      attributes: { 'gateway.outcome': 'refused', 'url.path': '/graphql' },
    });
  });

  it('follow an operation that is known by its plan as well, and long polls', async () => {
    const { spans } = await traced(async ({ sandbox, query }) => {
      const read = 'query($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
      const wait = 'query($id: ID!) { refreshJob(taxpayerId: $id, jobId: "job", waitSeconds: 1) { status } }';
      for (const id of ['one', 'two', 'three']) {
        sandbox.addTaxpayer({ id });
        sandbox.addJob({ taxpayerId: id, jobId: 'job', durationMs: Infinity });
        await query(read, { id });
        await Promise.all([query(read, { id }), query(wait, { id })]);
      }
    });
    const seen = spans
      .filter(({ name }) => name.startsWith('query '))
      .map((root) => spans.filter(({ parentSpanId }) => parentSpanId === root.spanId).map(({ name }) => name));
    expect(seen.filter((names) => names.includes(tokenCall))).toHaveLength(3);
    expect(seen.filter((names) => names.filter((name) => name === jobCall).length > 1)).toHaveLength(3);
    expect(seen.filter((names) => names.length === 0)).toHaveLength(3); // from memory
  });

  it('of an event stream last as long as the stream', async () => {
    const { spans } = await traced(async (gateway) => {
      const job = addJob(gateway);
      const response = await postEvents(gateway, { query: watchJob, variables: job }, caller);
      gateway.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
      expect(await response.text()).toContain('COMPLETED');
    });
    const stream = named(spans, 'subscription refreshJobUpdated');
    expect(stream).toMatchObject({ traceId, parentSpanId: callersSpan, status: 0 });
    const calls = spans.filter(({ name }) => name === jobCall);
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) {
      expect(call.parentSpanId).toBe(stream.spanId);
      expect(call.end).toBeLessThanOrEqual(stream.end);
    }
  });

  it("of a socket's operations continue the trace of its upgrade, side by side", async () => {
    const { spans } = await traced(async (gateway) => {
      const job = addJob(gateway);
      const socket = rawSocket(gateway.origin, { headers: caller });
      await socket.init();
      socket.subscribe({ query: watchJob, variables: job }, 'live');
      await socket.message('next');
      socket.subscribe({ query: `{ taxpayer(id: "x") { id } }` }, 'once');
      await socket.message('complete', 'once');
      gateway.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
      await socket.message('complete', 'live');
      socket.socket.close();
      await socket.closed;
    });
    for (const name of ['subscription refreshJobUpdated', 'query taxpayer']) {
      const operation = named(spans, name);
      expect(operation).toMatchObject({ traceId, parentSpanId: callersSpan, kind: 2 });
      expect(operation.attributes).toMatchObject({ 'gateway.transport': 'ws' });
    }
    expect(named(spans, jobCall).parentSpanId).toBe(named(spans, 'subscription refreshJobUpdated').spanId);
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
    for (const told of [/service\.name[^a-z]*edge/, /deployment\.environment\.name[^a-z]*staging/]) {
      expect(requests[0]?.body).toMatch(told);
    }
  });

  it('go to the address for traces as it is, and nowhere when the SDK or the exporter is disabled', async () => {
    const collector = await startCollector();
    const own = { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own` };
    await traced(askTypename, { ...own, OTEL_SDK_DISABLED: 'True' });
    await traced(askTypename, { ...own, OTEL_TRACES_EXPORTER: ' none' });
    expect(collector.requests).toEqual([]);
    await traced(askTypename, own);
    expect(collector.requests.map(({ url }) => url)).toEqual(['/own']);
  });

  it.each([
    ['ECONNREFUSED', () => ({ url: 'http://127.0.0.1:1' })],
    ['HTTP 429, 502, 503 or 504', () => startCollector(503)],
  ])(
    'cost no request anything when the collector is away or busy, which one log line says: %s',
    async (cause, start) => {
      setStandard({ OTEL_EXPORTER_OTLP_TIMEOUT: '1000', OTEL_BSP_SCHEDULE_DELAY: '10' });
      const gateway = await startTestGateway({ OTEL_EXPORTER_OTLP_ENDPOINT: (await start()).url });
      const told = () => linesWith(gateway.logs, { msg: 'trace collector rejects spans' });
      for (const _ of Array(3)) expect((await askTypename(gateway)).status).toBe(200);
      await until(() => told().length > 0);
      expect(told()).toMatchObject([{ cause }]);
    },
  );
});
