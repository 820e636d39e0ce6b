import type { MetricValue, MetricValueWithName } from 'prom-client';

/**
 * Counters and histograms for what happens several times in every request. They are read like those of prom-client and
 * registered beside them, but do not hash and copy labels at every count, which costs more than answering from memory.
 */
abstract class HotMetric<Series> {
  abstract readonly type: 'counter' | 'histogram';
  readonly aggregator = 'sum';
  readonly #all: { readonly labels: Record<string, string>; readonly series: Series }[] = [];
  /** By up to three label values, without making a key of them. */
  readonly #found = new Map<string, Map<string, Map<string, Series>>>();

  constructor(
    readonly name: string,
    readonly help: string,
    private readonly labelNames: readonly string[],
  ) {}

  protected abstract create(): Series;
  protected abstract values(labels: Record<string, string>, series: Series): MetricValue<string>[];

  /** What prom-client's registry asks of a metric. */
  async get() {
    const { name, help, type, aggregator } = this;
    return {
      name,
      help,
      type,
      aggregator,
      values: this.#all.flatMap(({ labels, series }) => this.values(labels, series)),
    };
  }

  protected of(first: string, second: string, third: string): Series {
    return this.#found.get(first)?.get(second)?.get(third) ?? this.#add(first, second, third);
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
    this.of(first, second, third).value += 1;
  }

  protected create() {
    return { value: 0 };
  }

  protected values(labels: Record<string, string>, { value }: { value: number }): MetricValue<string>[] {
    return [{ value, labels }];
  }
}

interface Buckets {
  sum: number;
  readonly counts: Float64Array;
}

/** With one label. */
export class HotHistogram extends HotMetric<Buckets> {
  readonly type = 'histogram';
  readonly #bounds: readonly number[];

  /** `bounds`: the upper ends of the buckets in ascending order, without infinity. */
  constructor(name: string, help: string, labelName: string, bounds: readonly number[]) {
    super(name, help, [labelName]);
    this.#bounds = bounds;
  }

  observe(label: string, value: number): void {
    const series = this.of(label, '', '');
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket += 1;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sum += value;
  }

  protected create() {
    return { sum: 0, counts: new Float64Array(this.#bounds.length + 1) };
  }

  protected values(labels: Record<string, string>, { sum, counts }: Buckets): MetricValueWithName<string>[] {
    let count = 0;
    const buckets = Array.from(counts, (inBucket, place) => {
      count += inBucket;
      const le = this.#bounds[place] ?? '+Inf';
      return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: count },
    ];
  }
}
