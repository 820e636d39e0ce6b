import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { startPrometheus } from './support/prometheus.js';

const path = (name: string) => fileURLToPath(new URL(`../../ops/${name}`, import.meta.url));
const promtool = (...args: string[]) => promisify(execFile)('promtool', args);

const dashboard = JSON.parse(readFileSync(path('grafana-dashboard.json'), 'utf8')) as {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
};

describe('promtool', () => {
  it('finds the rules well formed', async () => {
    expect((await promtool('check', 'rules', path('alerts.yml'))).stdout).toContain('SUCCESS');
  });

  it('sees each alert fire when it should, and not when it should not', async () => {
    expect((await promtool('test', 'rules', path('alerts.test.yml'))).stdout).toContain('SUCCESS');
  });
});

describe('A Prometheus that scrapes a gateway', () => {
  let gateway: TestGateway;
  let prometheus: Awaited<ReturnType<typeof startPrometheus>>;

  interface Alert {
    readonly labels: Readonly<Record<string, string>>;
    readonly state: string;
    readonly annotations: Readonly<Record<string, string>>;
  }
  const firing = async () => {
    const { alerts } = await prometheus.get<{ alerts: readonly Alert[] }>('alerts');
    return alerts.filter(({ state }) => state === 'firing');
  };
  const follow = async (id: string) => {
    const query = `subscription { taxpayerTokenUpdated(taxpayerId: "${id}") { status } }`;
    const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
    const body = JSON.stringify({ query });
    return (await fetch(`${gateway.origin}/graphql/stream`, { method: 'POST', headers, body })).text();
  };
  const read = (id: string) => gateway.query(`{ taxpayerToken(taxpayerId: "${id}") { status } }`);

  beforeAll(async () => {
    gateway = await startTestGateway({ UPSTREAM_TIMEOUT_MS: '200', UPSTREAM_DEADLINE_MS: '400' });
    prometheus = await startPrometheus({ target: new URL(gateway.origin).host, rules: [path('alerts.yml')] });
  }, 60_000);

  afterAll(async () => {
    await prometheus?.stop();
    await gateway?.stop();
  });

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

  it('raises the alerts that a fault of the service causes, though it only ends subscriptions', async () => {
    gateway.sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { status: 401 } });
    const wanted = ['AvailabilityAtRisk', 'CredentialsRefused'];
    let raised: readonly Alert[] = [];
    while (!wanted.every((name) => raised.some(({ labels }) => labels['alertname'] === name))) {
      expect(await follow(gateway.sandbox.control.addTaxpayer({}).id)).toContain('UPSTREAM_CREDENTIALS_REJECTED');
      await delay(50);
      raised = await firing();
    }
    const risk = raised.find(({ labels }) => labels['alertname'] === 'AvailabilityAtRisk');
    expect(risk?.annotations['summary']).toMatch(/^\d[\d.]*% of requests fail/);
    const summaries = raised.map(({ annotations }) => annotations['summary']);
    expect(summaries).toContain("The service refuses the gateway's own credentials at taxpayerToken");
  }, 120_000);

  it('evaluates each query of the dashboard, and finds numbers for all that has happened', async () => {
    const empty: string[] = [];
    for (const { title, targets } of dashboard.panels) {
      for (const { expr } of targets) {
        const query = expr.replaceAll('$__rate_interval', '1m');
        const { result } = await prometheus.get<{ result: unknown[] }>('query', { query });
        if (result.length === 0) empty.push(title);
      }
    }
    // No decision point is configured.
    expect(empty).toEqual(['Calls to the decision point', 'Duration of a call to the decision point, 95th percentile']);
  });
});
