import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Registry } from 'prom-client';
import { parse } from 'yaml';
import { Metrics } from '../../src/observability/Metrics.js';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string };
}
interface Rule extends Partial<Alert> {
  readonly record?: string;
  readonly expr: string;
}

const file = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const rules = (parse(file('ops/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(({ rules }) => rules);
const alerts = rules.filter((rule): rule is Alert => rule.alert !== undefined);
const records = rules.filter(({ record }) => record !== undefined);
const dashboard = JSON.parse(file('ops/grafana-dashboard.json')) as {
  panels: { title: string; targets: { expr: string; legendFormat: string }[] }[];
};
const queries = [
  ...records.map(({ record, expr }) => ({ where: `record ${record}`, expr, text: '' })),
  ...alerts.map(({ alert, expr, annotations }) => ({ where: `alert ${alert}`, expr, text: annotations.summary })),
  ...dashboard.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr, legendFormat }) => ({ where: `panel ${title}`, expr, text: legendFormat })),
  ),
];

/** Labels by metric name, as Prometheus sees them; `instance` and `job` are its own. */
const known = new Map<string, Set<string>>([['up', new Set()]]);
const words = new Set(
  'sum min max avg by rate increase histogram_quantile le without and or unless offset bool for'.split(' '),
);

beforeAll(() => {
  const metrics = new Metrics();
  metrics.showBudget(600);
  metrics.showKeySets(() => []);
  metrics.showLogLinesDropped(() => 0);
  metrics.showBreakers(() => false);
  for (const { name, type, labelNames } of describedBy(metrics.registry)) {
    const labels = new Set([...labelNames, 'instance', 'job']);
    known.set(name, labels);
    if (type === 'histogram') {
      known.set(`${name}_bucket`, new Set([...labels, 'le']));
      known.set(`${name}_count`, labels);
    }
  }
});
beforeAll(() => {
  for (const { record = '' } of records) known.set(record, new Set()); // sums of everything
});
afterAll(() => known.clear());

describe('What operators are given', () => {
  it('asks only for metrics the gateway has, by labels they have', () => {
    expect(queries.flatMap(({ where, expr, text }) => problemsOf(expr, text).map((one) => `${where}: ${one}`))).toEqual(
      [],
    );
  });

  it('would notice a metric or a label that was renamed', () => {
    expect(problemsOf('sum by (code) (rate(gateway_errors_renamed_total[5m]))', '')).toEqual([
      'no metric gateway_errors_renamed_total',
    ]);
    expect(problemsOf('sum by (kode) (rate(gateway_errors_total[5m]))', '')).toEqual(['no label kode']);
    expect(problemsOf('gateway_errors_total{kode="X"}', '{{kode}}')).toEqual(['no label kode', 'no label kode']);
  });

  it('shows every metric of the gateway in a panel or an alert', () => {
    const unused = [...known.keys()]
      .filter((name) => name.startsWith('gateway_') && !/_(bucket|count)$/.test(name))
      .filter((name) => !queries.some(({ expr }) => new RegExp(`\\b${name}(_bucket)?\\b`).test(expr)));
    expect(unused).toEqual([]);
    expect([...known.keys()].filter((name) => /^gateway_(?!.*_(bucket|count)$)/.test(name)).length).toBeLessThanOrEqual(
      20,
    );
  });

  it('has a section of the runbook for every alert, and no other', () => {
    const sections = [...file('docs/runbook.md').matchAll(/^### (\S+)$/gm)].map(([, name]) => name);
    expect(sections.sort()).toEqual([...new Set(alerts.map(({ alert }) => alert))].sort());
  });

  it('alerts on the first event as well: the series it is counted in are there before, at 0', async () => {
    const metrics = new Metrics();
    metrics.showLogLinesDropped(() => 0);
    const counted = alerts.flatMap(({ expr }) => [...expr.matchAll(/^increase\((\w+)(?:\{(\w+)=~?"(.+)"\})?\[/g)]);
    expect(counted.length).toBeGreaterThan(5);
    for (const [, name = '', label, values = ''] of counted) {
      const series = (await metrics.registry.getSingleMetric(name)?.get())?.values ?? [];
      const begun = series.filter(({ value }) => value === 0).map(({ labels }) => label && labels[label]);
      expect({ name, begun }).toEqual({ name, begun: expect.arrayContaining(label ? values.split('|') : [undefined]) });
    }
    const kinds = (await metrics.unknownValues.get()).values.map(({ labels }) => labels.kind);
    expect(kinds).toEqual(['provider', 'taxpayer-status', 'job-status']);
  });

  it('has a test of every alert', () => {
    const tests = file('ops/alerts.test.yml');
    expect(alerts.filter(({ alert }) => !new RegExp(`alertname(: |=")${alert}\\b`).test(tests))).toEqual([]);
  });
});

function describedBy(registry: Registry) {
  return registry.getMetricsAsArray().map((metric) => {
    const { name, type, labelNames = [] } = metric as unknown as { name: string; type: string; labelNames?: string[] };
    return { name, type, labelNames };
  });
}

/** Names and labels in a PromQL expression, and labels in the text beside it, that nothing exports. */
function problemsOf(expr: string, text: string): string[] {
  const problems: string[] = [];
  const labels = new Set<string>();
  const wanted: string[] = [...text.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label = '']) => label);
  let rest = expr.replace(/\$__\w+|\[[^\]]*\]/g, ' ');
  rest = rest.replace(/\{([^}]*)\}/g, (_, inner: string) => {
    wanted.unshift(...[...inner.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label));
    return ' ';
  });
  rest = rest.replace(/\b(?:by|without)\s*\(([^)]*)\)/g, (_, inner: string) => {
    wanted.unshift(...inner.split(',').map((label) => label.trim()));
    return ' ';
  });
  for (const [name] of rest.matchAll(/\b[a-zA-Z_:][\w:]*\b/g)) {
    if (words.has(name)) continue;
    const has = known.get(name);
    if (has === undefined) problems.push(`no metric ${name}`);
    for (const label of has ?? wanted) labels.add(label);
  }
  if (known.has('up') && rest.includes('up')) for (const label of ['instance', 'job']) labels.add(label);
  return [...problems, ...wanted.filter((label) => !labels.has(label)).map((label) => `no label ${label}`)];
}
