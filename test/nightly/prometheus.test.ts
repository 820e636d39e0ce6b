import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startTestDecisionPoint, type TestDecisionPoint } from '../support/decisionPoint.js';
import {
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
  type Texts,
  type TrustedProvider,
} from '../support/gateway.js';
import { startRedis } from '../support/redis.js';
import { read as readFile } from '../support/repository.js';
import { run } from '../support/run.js';
import { postEvents } from '../support/streamReader.js';
import { startPrometheus } from './support/prometheus.js';

const promtool = (...args: string[]) => run('promtool', args);

const dashboard = JSON.parse(readFile('ops/grafana-dashboard.json')) as {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
};

describe('promtool', () => {
  it('finds the rules well formed', async () => {
    expect((await promtool('check', 'rules', 'ops/alerts.yml')).stdout).toContain('SUCCESS');
  });

  it('sees each alert fire when it should, and not when it should not', async () => {
    expect((await promtool('test', 'rules', 'ops/alerts.test.yml')).stdout).toContain('SUCCESS');
  });
});

describe('A Prometheus that scrapes a gateway', () => {
  let gateway: TestGateway;
  let provider: TrustedProvider;
  let point: TestDecisionPoint;
  let prometheus: Awaited<ReturnType<typeof startPrometheus>>;

  interface Alert {
    readonly labels: Texts;
    readonly state: string;
    readonly annotations: Texts;
  }
  const firing = async () => {
    const { alerts } = await prometheus.get<{ alerts: readonly Alert[] }>('alerts');
    return alerts.filter(({ state }) => state === 'firing');
  };
  const headersFor = async (scope: string) => {
    const token = await provider.token({ sub: 'caller', scope: `taxpayers:read ${scope}` });
    return { authorization: `Bearer ${token}` };
  };
  const read = async (id: string) =>
    gateway.query(`{ taxpayerToken(taxpayerId: "${id}") { status } }`, {}, await headersFor('taxpayers:any'));
  /** Follows a taxpayer until the decision that allows it is over and nobody can decide any more. */
  const follow = async (id: string) => {
    point.allow('caller', [id]);
    const query = `subscription { taxpayerTokenUpdated(taxpayerId: "${id}") { status } }`;
    const stream = await postEvents(gateway, { query }, await headersFor(''));
    expect(stream.status).toBe(200);
    point.behave('answers 500');
    const text = await stream.text();
    point.behave(undefined);
    return text;
  };

  beforeAll(async () => {
    [provider, point] = await Promise.all([startTrustedProvider(), startTestDecisionPoint()]);
    const decisions = { AUTH_DECISION_URL: point.url, AUTH_DECISION_TTL_SECONDS: '1' };
    const times = { UPSTREAM_TIMEOUT_MS: '200', UPSTREAM_DEADLINE_MS: '400' };
    const { url: CACHE_URL } = await startRedis();
    gateway = await startTestGateway({ ...provider.env, ...decisions, ...times, CACHE_URL });
    prometheus = await startPrometheus({ target: new URL(gateway.origin).host, rules: [resolve('ops/alerts.yml')] });
  }, 60_000);

  it('raises no alert while all is well', async () => {
    const { authorized } = gateway.sandbox.demo.taxpayerIds;
    const hasOperations = async () => {
      const { result } = await prometheus.get<{ result: unknown[] }>('query', {
        query: 'increase(gateway_operations_total{operation="taxpayerToken",transport="http",outcome="ok"}[1m]) > 0',
      });
      return result.length > 0;
    };
    while (!(await hasOperations())) {
      await read(authorized);
      await delay(50);
    }
    expect(await firing()).toEqual([]);
  }, 60_000);

  /** Does `work` again and again until the alert fires. */
  const whenFiring = async (name: string, work: () => Promise<unknown>): Promise<Alert> => {
    for (;;) {
      await work();
      await delay(50);
      const alert = (await firing()).find(({ labels }) => labels['alertname'] === name);
      if (alert !== undefined) return alert;
    }
  };

  it('raises the alert of the objective for subscriptions that end with an error', async () => {
    const { id } = gateway.sandbox.addTaxpayer({});
    const risk = await whenFiring('AvailabilityAtRisk', async () => {
      const text = await follow(id);
      expect(text).toContain('"data":{"taxpayerTokenUpdated"');
      expect(text).toContain('AUTH_UNAVAILABLE');
    });
    expect(risk.annotations['summary']).toMatch(/^\d[\d.]*% of requests in the last (hours|days) failed/);
  });

  it('raises the alert of a cause', async () => {
    const { sandbox } = gateway;
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 401 } });
    const { annotations } = await whenFiring('CredentialsRefused', () => read(sandbox.addTaxpayer({}).id));
    expect(annotations['summary']).toBe("The service refuses the gateway's own credentials");
  });

  it('evaluates each query of the dashboard, and finds numbers for all that has happened', async () => {
    const empty: string[] = [];
    for (const { title, targets } of dashboard.panels) {
      for (const { expr } of targets) {
        const query = expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*');
        const { result } = await prometheus.get<{ result: unknown[] }>('query', { query });
        if (result.length === 0) empty.push(title);
      }
    }
    expect(empty).toEqual([]);
  });
});
