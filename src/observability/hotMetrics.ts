import type { MetricValue, MetricValueWithName } from 'prom-client';

/**
 * Counters and histograms for what happens several times in every request. They are read like those of prom-client and can
 * be registered beside them; what they leave out is the hashing and copying of labels at every count, which costs more
 * than answering from memory does.
 */

/** Label values, in the order of the names. */
type Labels = readonly [first: string, second?: string, third?: string];

/** The series of a metric by up to three label values, without making a key of them. */
class SeriesMap<Series> {
  readonly all: { readonly labels: Labels; readonly series: Series }[] = [];
  readonly #create: () => Series;
  readonly #found = new Map<string, Map<string, Map<string, Series>>>();

  constructor(create: () => Series) {
    this.#create = create;
  }

  of(first: string, second: string, third: string): Series {
    return this.#found.get(first)?.get(second)?.get(third) ?? this.#add(first, second, third);
  }

  #add(first: string, second: string, third: string): Series {
    const series = this.#create();
    const bySecond = this.#found.get(first) ?? new Map<string, Map<string, Series>>();
    this.#found.set(
      first,
      bySecond.set(second, (bySecond.get(second) ?? new Map<string, Series>()).set(third, series)),
    );
    this.all.push({ labels: [first, second, third], series });
    return series;
  }
}

/** What prom-client's registry asks of a metric. */
abstract class HotMetric {
  abstract readonly type: 'counter' | 'histogram';
  readonly aggregator = 'sum';

  constructor(
    readonly name: string,
    readonly help: string,
    protected readonly labelNames: readonly string[],
  ) {}

  protected abstract values(): MetricValue<string>[];

  async get() {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values: this.values() };
  }

  protected labelled(labels: Labels): Record<string, string> {
    return Object.fromEntries(this.labelNames.map((name, place) => [name, labels[place] ?? '']));
  }
}

export class HotCounter extends HotMetric {
  readonly type = 'counter';
  readonly #series = new SeriesMap(() => ({ value: 0 }));

  inc(first = '', second = '', third = ''): void {
    this.#series.of(first, second, third).value += 1;
  }

  protected values(): MetricValue<string>[] {
    return this.#series.all.map(({ labels, series }) => ({ value: series.value, labels: this.labelled(labels) }));
  }
}

/** With at most one label. */
export class HotHistogram extends HotMetric {
  readonly type = 'histogram';
  readonly #bounds: readonly number[];
  readonly #series: SeriesMap<{ sum: number; readonly counts: Float64Array }>;

  /** `bounds`: the upper ends of the buckets in ascending order, without infinity. */
  constructor(name: string, help: string, labelNames: readonly string[], bounds: readonly number[]) {
    super(name, help, labelNames);
    this.#bounds = bounds;
    this.#series = new SeriesMap(() => ({ sum: 0, counts: new Float64Array(bounds.length + 1) }));
  }

  observe(label: string, value: number): void {
    const series = this.#series.of(label, '', '');
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket += 1;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sum += value;
  }

  protected values(): MetricValueWithName<string>[] {
    return this.#series.all.flatMap(({ labels, series }) => {
      const own = this.labelled(labels);
      let count = 0;
      const buckets = Array.from(series.counts, (inBucket, place) => {
        count += inBucket;
        const le = this.#bounds[place] ?? '+Inf';
        return { metricName: `${this.name}_bucket`, labels: { le, ...own }, value: count };
      });
      return [
        ...buckets,
        { metricName: `${this.name}_sum`, labels: own, value: series.sum },
        { metricName: `${this.name}_count`, labels: own, value: count },
      ];
    });
  }
}
