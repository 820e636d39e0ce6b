import { Server } from 'node:net';
import { freePort } from '../../support/freePort.js';
import { metric, startTestGateway } from '../../support/gateway.js';
import { rawHttp } from '../../support/rawHttp.js';

const scrape = async (origin: string) => (await fetch(`${origin}/metrics`)).text();
/** Each is a whole line of the page: a series with its value. */
const expectLines = (page: string, ...lines: string[]) =>
  expect(page.split('\n')).toEqual(expect.arrayContaining(lines));

describe('Metrics', () => {
  it('name operations by the schema and never by what a client calls them', async () => {
    const { origin, query, sandbox } = await startTestGateway();
    const [id] = Object.values(sandbox.demo.taxpayerIds);
    const atStart = await scrape(origin);
    for (const operation of [
      'taxpayerToken',
      'createClientLink',
      'refreshJobUpdated',
      '_entities',
      'several',
      'none',
    ]) {
      // or an alert would not see the first failures
      expectLines(atStart, `gateway_operations_total{operation="${operation}",transport="ws",outcome="failed"} 0`);
    }
    await query(`query SsnOf900001234 { mine: taxpayerToken(taxpayerId: "${id}") { status } }`);
    await query(`{ a: taxpayer(id: "${id}") { id } b: taxpayerToken(taxpayerId: "${id}") { status } }`);
    const wait = `refreshJob(taxpayerId: "${id}", jobId: "none", waitSeconds: 1) { status }`;
    await query(`{ ${wait} a: taxpayer(id: "${id}") { id } }`);
    await query(`query { ...F a: taxpayer(id: "${id}") { id } } fragment F on Query { ${wait} }`);
    await query('{ __typename }');
    await query('{ noSuchField900001234 }');
    await query('{ a: taxpayer(id: " ") { id } b: taxpayer(id: " ") { id } }');
    const page = await scrape(origin);
    expectLines(
      page,
      'gateway_operations_total{operation="taxpayerToken",transport="http",outcome="ok"} 1',
      'gateway_operations_total{operation="several",transport="http",outcome="ok"} 1',
      // slow on purpose, so that it is told apart from what has to be quick
      'gateway_operations_total{operation="refreshJob",transport="http",outcome="errors"} 2',
      'gateway_operations_total{operation="introspection",transport="http",outcome="ok"} 1',
      'gateway_operations_total{operation="none",transport="http",outcome="refused"} 1',
      'gateway_errors_total{code="BAD_USER_INPUT"} 2',
    );
    expect(page).not.toContain('900001234');
    expect(page).not.toContain(id);
  });

  it('tell how a read was answered and what is left of the token budget', async () => {
    const { origin, query, sandbox } = await startTestGateway({ TOKEN_BUDGET_PER_HOUR: '40' });
    expectLines(await scrape(origin), 'gateway_token_budget_left 40');
    const read = `{ taxpayerToken(taxpayerId: "${sandbox.demo.taxpayerIds.authorized}") { status } }`;
    for (let n = 0; n < 3; n += 1) await query(read);
    expectLines(
      await scrape(origin),
      'gateway_cache_reads_total{kind="token",tier="fetched"} 1',
      'gateway_cache_reads_total{kind="token",tier="memory"} 2',
      'gateway_token_budget_left 39',
      'gateway_token_budget_per_hour 40',
      'gateway_upstream_calls_total{endpoint="taxpayerToken",outcome="ok"} 1',
      'gateway_errors_total{code="UPSTREAM_TIMEOUT"} 0',
    );
  });

  it('tell since when an identity provider has given no keys', async () => {
    const provider = { AUTH_ISSUER: 'https://id.example/', AUTH_JWKS_URL: 'http://127.0.0.1:9/' };
    const gateway = await startTestGateway({ AUTH_MODE: 'jwt', AUTH_AUDIENCE: 'gateway', ...provider });
    expect(await metric(gateway, 'gateway_key_set_age_seconds')).toBeGreaterThan(0);
  });

  it('show refused credentials', async () => {
    const { origin, query, sandbox } = await startTestGateway();
    sandbox.setClientSecret('another');
    await query(`{ taxpayerToken(taxpayerId: "${sandbox.demo.taxpayerIds.authorized}") { status } }`);
    expectLines(
      await scrape(origin),
      'gateway_calls_paused_total{endpoint="taxpayerToken",reason="credentials-rejected"} 1',
      'gateway_errors_total{code="UPSTREAM_CREDENTIALS_REJECTED"} 1',
    );
  });

  it('are written once for all who ask at the same time', async () => {
    const connection = rawHttp((await startTestGateway()).origin);
    const ask = 'GET /metrics HTTP/1.1\r\nhost: gateway\r\n\r\n';
    connection.write(ask + ask);
    const [one, same] = [await connection.answer(), await connection.answer()];
    connection.write(ask);
    const next = await connection.answer();
    expect(same?.body).toBe(one?.body);
    expect(next?.body).not.toBe(one?.body);
  });

  it('are on METRICS_PORT alone when that is set, before PORT listens, where the process is not ready yet', async () => {
    const port = await freePort();
    const { listen } = Server.prototype;
    /** The readiness when PORT is about to listen: its server is the one that takes upgrades. */
    const early = new Promise<number>((resolve, reject) => {
      const atListen = function (this: Server, ...args: [number]) {
        if (args[0] !== 0 || this.listenerCount('upgrade') === 0) return listen.apply(this, args);
        Server.prototype.listen = listen;
        fetch(`http://127.0.0.1:${port}/health/ready`)
          .then(({ status }) => resolve(status), reject)
          .finally(() => listen.apply(this, args));
        return this;
      };
      Server.prototype.listen = atListen as typeof listen;
    });
    const { origin } = await startTestGateway({ METRICS_PORT: String(port) });
    expect(await early).toBe(503);
    expect((await fetch(`http://127.0.0.1:${port}/health/ready`)).status).toBe(200);
    expect((await fetch(`${origin}/metrics`)).status).toBe(404);
    expect(await scrape(`http://127.0.0.1:${port}`)).toContain('gateway_operations_total');
    const wrongPort = await fetch(`http://127.0.0.1:${port}/graphql`);
    expect([wrongPort.status, await wrongPort.text()]).toEqual([404, expect.not.stringContaining('/graphql')]);
    expect(wrongPort.headers.get('cache-control')).toBe('no-store');
    expect(wrongPort.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  });
});
