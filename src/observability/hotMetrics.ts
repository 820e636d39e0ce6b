import type { Metric, MetricValueWithName, Registry } from 'prom-client';

type Samples = MetricValueWithName<string>[];

/**
 * Counters and histograms for what happens several times in every request. They are read like those of prom-client and
 * registered beside them, but do not hash and copy labels at every count, which costs more than answering from memory.
 */
abstract class HotMetric {
  abstract readonly type: 'counter' | 'histogram';
  readonly #all: Samples = [];
  /** Of each series, by up to three label values, without making a key of them. */
  readonly #found = new Map<string, Map<string, Map<string, Samples>>>();

  constructor(
    readonly name: string,
    readonly help: string,
    private readonly labelNames: readonly string[],
    registry: Registry,
  ) {
    registry.registerMetric(this as unknown as Metric);
  }

  /** What prom-client's registry asks of a metric. */
  async get() {
    const { name, help, type } = this;
    return { name, help, type, aggregator: 'sum', values: this.#all };
  }

  /** What a new series shows, all 0. */
  protected abstract create(labels: Record<string, string>): Samples;

  protected samples(first: string, second: string, third: string): Samples {
    return this.#found.get(first)?.get(second)?.get(third) ?? this.#add(first, second, third);
  }

  #add(...values: [first: string, second: string, third: string]): Samples {
    const [first, second, third] = values;
    const samples = this.create(Object.fromEntries(this.labelNames.map((name, n) => [name, values[n] ?? ''])));
    const bySecond = this.#found.get(first) ?? new Map<string, Map<string, Samples>>();
    const byThird = bySecond.get(second) ?? new Map<string, Samples>();
    this.#found.set(first, bySecond.set(second, byThird.set(third, samples)));
    this.#all.push(...samples);
    return samples;
  }
}

export class HotCounter extends HotMetric {
  readonly type = 'counter';

  /** Label values in the order of the names. */
  inc(first = '', second = '', third = ''): void {
    add(this.samples(first, second, third), 0, 1);
  }

  protected create(labels: Record<string, string>): Samples {
    return [{ labels, value: 0 }];
  }
}

/** Upper ends of all but the last bucket, in seconds. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** With one label. */
export class HotHistogram extends HotMetric {
  readonly type = 'histogram';

  observe(label: string, seconds: number): void {
    const samples = this.samples(label, '', '');
    // a bucket counts what is in those before it as well
    for (let place = bounds.length; place >= 0 && seconds <= (bounds[place] ?? Infinity); place -= 1)
      add(samples, place, 1);
    add(samples, bounds.length + 1, seconds);
    add(samples, bounds.length + 2, 1);
  }

  protected create(labels: Record<string, string>): Samples {
    const buckets = [...bounds, '+Inf'].map((le) => ({ metricName: `${this.name}_bucket`, labels: { le, ...labels } }));
    const totals = ['sum', 'count'].map((total) => ({ metricName: `${this.name}_${total}`, labels }));
    return [...buckets, ...totals].map((sample) => ({ ...sample, value: 0 }));
  }
}

function add(samples: Samples, place: number, value: number): void {
  (samples[place] as Samples[number]).value += value;
}
