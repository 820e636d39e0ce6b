import type { Metric, MetricValue, MetricValueWithName, Registry } from 'prom-client';

type Labels = Record<string, string>;

/**
 * Counters and histograms for what happens several times in every request. They are read like those of prom-client and
 * registered beside them, but do not hash and copy labels at every count, which costs more than answering from memory.
 */
abstract class HotMetric<Series> {
  abstract readonly type: 'counter' | 'histogram';
  readonly #all: { readonly labels: Labels; readonly series: Series }[] = [];
  /** Series by up to three label values; nested, so that no key string is built. */
  readonly #found = new Map<string, Map<string, Map<string, Series>>>();
  /** The series used last: one request often counts in the same one many times. */
  #latest:
    | { readonly first: string; readonly second: string; readonly third: string; readonly series: Series }
    | undefined;

  constructor(
    readonly name: string,
    readonly help: string,
    private readonly labelNames: readonly string[],
    registry: Registry,
  ) {
    registry.registerMetric(this as unknown as Metric);
  }

  protected abstract create(): Series;
  protected abstract values(labels: Labels, series: Series): MetricValue<string>[];

  /** What prom-client's registry asks of a metric. */
  async get() {
    const values = this.#all.flatMap(({ labels, series }) => this.values(labels, series));
    return { name: this.name, help: this.help, type: this.type, values };
  }

  protected of(first: string, second: string, third: string): Series {
    const latest = this.#latest;
    if (latest?.first === first && latest.second === second && latest.third === third) return latest.series;
    const series = this.#found.get(first)?.get(second)?.get(third) ?? this.#add(first, second, third);
    this.#latest = { first, second, third, series };
    return series;
  }

  #add(...values: [first: string, second: string, third: string]): Series {
    const [first, second, third] = values;
    const series = this.create();
    const bySecond = this.#found.get(first) ?? new Map<string, Map<string, Series>>();
    const byThird = bySecond.get(second) ?? new Map<string, Series>();
    this.#found.set(first, bySecond.set(second, byThird.set(third, series)));
    this.#all.push({ labels: Object.fromEntries(this.labelNames.map((name, n) => [name, values[n] ?? ''])), series });
    return series;
  }
}

export class HotCounter extends HotMetric<{ value: number }> {
  readonly type = 'counter';

  /** Label values in the order of the names. */
  inc(first = '', second = '', third = ''): void {
    this.add(1, first, second, third);
  }

  add(count: number, first = '', second = '', third = ''): void {
    this.of(first, second, third).value += count;
  }

  /** Begins a series at 0. */
  touch(first = '', second = '', third = ''): void {
    this.of(first, second, third);
  }

  protected create() {
    return { value: 0 };
  }

  protected values(labels: Labels, { value }: { value: number }) {
    return [{ value, labels }];
  }
}

/** Upper ends of all but the last bucket, in seconds. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface Buckets {
  sum: number;
  readonly counts: Float64Array;
}

/** A histogram with one label. */
export class HotHistogram extends HotMetric<Buckets> {
  readonly type = 'histogram';

  observe(label: string, seconds: number): void {
    const series = this.of(label, '', '');
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket += 1;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sum += seconds;
  }

  protected create() {
    return { sum: 0, counts: new Float64Array(bounds.length + 1) };
  }

  protected values(labels: Labels, { sum, counts }: Buckets): MetricValueWithName<string>[] {
    const { name } = this;
    let count = 0;
    const buckets = Array.from(counts, (inBucket, place) => {
      count += inBucket;
      return { metricName: `${name}_bucket`, labels: { le: bounds[place] ?? '+Inf', ...labels }, value: count };
    });
    const total = { metricName: `${name}_sum`, labels, value: sum };
    return [...buckets, total, { metricName: `${name}_count`, labels, value: count }];
  }
}
