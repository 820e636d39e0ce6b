import {
  type Metric,
  type MetricObjectWithValues,
  type MetricValue,
  type OpenMetricsContentType,
  Registry,
} from 'prom-client';

export type Snapshot = MetricObjectWithValues<MetricValue<string>>[];
/** Prometheus' text format, or OpenMetrics, which has exemplars as well. */
export type MetricsForm = 'text' | 'openmetrics';
/** Everything counted, in one of the two forms. */
export type MetricsText = (form: MetricsForm) => Promise<string>;

export const contentTypes: Readonly<Record<MetricsForm, string>> = {
  text: Registry.PROMETHEUS_CONTENT_TYPE,
  openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
};

/** The form that a scraper asks for. */
export function formFor(accept = ''): MetricsForm {
  return accept.includes('application/openmetrics-text') ? 'openmetrics' : 'text';
}

export async function expose(registry: Registry, form: MetricsForm): Promise<string> {
  return form === 'text' ? registry.metrics() : openMetrics((await registry.getMetricsAsJSON()) as Snapshot);
}

/** prom-client renames counters as it writes OpenMetrics, so it gets copies. */
export function openMetrics(snapshot: Snapshot): Promise<string> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const metric of snapshot) {
    const copy = { ...metric, get: () => copy };
    registry.registerMetric(copy as unknown as Metric);
  }
  return registry.metrics();
}

interface Exemplar {
  readonly labelSet: Readonly<Record<string, string>>;
  readonly value: number;
  /** Epoch seconds. */
  readonly timestamp: number;
}
type ValueWithExemplar = MetricValue<string> & { exemplar?: Exemplar };

/** `sums` with the newest exemplar of each bucket in `snapshots`: adding them up loses them. */
export function withExemplars(sums: Snapshot, snapshots: readonly Snapshot[]): Snapshot {
  const newest = new Map<string, Exemplar>();
  for (const { values } of snapshots.flat()) {
    for (const value of values as ValueWithExemplar[]) {
      const { exemplar } = value;
      const place = placeOf(value);
      if (exemplar && exemplar.timestamp > (newest.get(place)?.timestamp ?? 0)) newest.set(place, exemplar);
    }
  }
  for (const { values } of newest.size > 0 ? sums : []) {
    for (const value of values as ValueWithExemplar[]) {
      const exemplar = newest.get(placeOf(value));
      if (exemplar) value.exemplar = exemplar;
    }
  }
  return sums;
}

function placeOf({ metricName = '', labels }: MetricValue<string> & { metricName?: string }): string {
  return metricName + JSON.stringify(labels);
}
