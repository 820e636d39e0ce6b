import { parse } from 'yaml';
import { Metrics } from '../../src/observability/Metrics.js';
import { read } from '../support/repository.js';

interface Alert {
  readonly alert: string;
  readonly expr: string;
}
interface Rule extends Partial<Alert> {
  readonly expr: string;
}

const rules = (parse(read('ops/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(({ rules }) => rules);
const alerts = rules.filter((rule): rule is Alert => rule.alert !== undefined);
const dashboard = JSON.parse(read('ops/grafana-dashboard.json')) as {
  panels: { targets: { expr: string }[] }[];
};
const queries = [
  ...rules.map(({ expr }) => expr),
  ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
];

describe('What operators are given', () => {
  it('shows every metric of the gateway in a panel or an alert', () => {
    const metrics = new Metrics();
    metrics.showBudget(600);
    metrics.showKeySets(() => []);
    metrics.showLogLinesDropped(() => 0);
    const own = metrics.registry.getMetricsAsArray().map(({ name }) => name);
    const names = own.filter((name) => name.startsWith('gateway_'));
    expect(names.filter((name) => !queries.some((expr) => new RegExp(`\\b${name}(_bucket)?\\b`).test(expr)))).toEqual(
      [],
    );
    expect(names.length).toBeLessThanOrEqual(20);
  });

  it('has a section of the runbook for every alert, and no other', () => {
    const sections = [...read('docs/runbook.md').matchAll(/^### (\S+)$/gm)].map(([, name]) => name);
    expect(sections.sort()).toEqual([...new Set(alerts.map(({ alert }) => alert))].sort());
  });

  it('alerts on the first event as well: the series it is counted in are there before, at 0', async () => {
    const metrics = new Metrics();
    metrics.showLogLinesDropped(() => 0);
    const counted = alerts.flatMap(({ expr }) => [
      ...expr.matchAll(/^(?:sum(?: by \(\w+\) )?\()?increase\((\w+)(?:\{(\w+)=~?"(.+)"\})?\[/g),
    ]);
    expect(counted.length).toBeGreaterThan(4);
    for (const [, name = '', label, values = ''] of counted) {
      const series = (await metrics.registry.getSingleMetric(name)?.get())?.values ?? [];
      const begun = series.filter(({ value }) => value === 0).map(({ labels }) => label && labels[label]);
      expect({ name, begun }).toEqual({ name, begun: expect.arrayContaining(label ? values.split('|') : [undefined]) });
    }
  });

  it('asks only for ends of buckets that there are', () => {
    const { registry } = new Metrics();
    const ends = queries.flatMap((expr) => [...expr.matchAll(/(\w+)_bucket\{[^}]*le="([^"]+)"/g)]);
    expect(ends.length).toBeGreaterThan(0);
    for (const [, name = '', end] of ends) {
      expect(registry.getSingleMetric(name)).toMatchObject({ upperBounds: expect.arrayContaining([Number(end)]) });
    }
  });

  it('has a test of every alert', () => {
    const tests = read('ops/alerts.test.yml');
    expect(alerts.filter(({ alert }) => !new RegExp(`alertname(: |=")${alert}\\b`).test(tests))).toEqual([]);
  });
});
