import type { ProviderEntry } from './Provider.js';

/** The kinds of values that the service may extend; also a label of metrics. */
export type ValueKind = 'provider' | 'taxpayer-status' | 'job-status';

/** An object of the schema that shows what a datasource found. */
type ShownType<View, Shown> = new (view: View, vocabulary: Vocabulary) => Shown;

/** Bound of the unknown values that are told apart, so that the service cannot fill our memory. */
const maxUnknown = 100;

/** Translates what the datasources found into the words of the schema. */
export class Vocabulary {
  readonly #providers: ReadonlyMap<string, string>;
  readonly #unknown = new Set<string>();
  readonly #shown = new WeakMap<object, unknown>();

  /** `onUnknown` is called once for each value that the schema has no name for. */
  constructor(
    providers: readonly ProviderEntry[],
    private readonly onUnknown: (kind: ValueKind, value: string) => void,
  ) {
    this.#providers = new Map(providers.map(({ value, name }) => [value, name]));
  }

  /** Shows a view as an object of the schema, the same view as the same object. A view at hand costs no promise. */
  show<View extends object, Shown>(type: ShownType<View, Shown>, view: View | Promise<View>): Shown | Promise<Shown> {
    return view instanceof Promise ? view.then((ready) => this.shown(type, ready)) : this.shown(type, view);
  }

  shown<View extends object, Shown>(type: ShownType<View, Shown>, view: View): Shown {
    const known = this.#shown.get(view);
    if (known !== undefined) return known as Shown;
    const shown = new type(view, this);
    this.#shown.set(view, shown);
    return shown;
  }

  provider(value: string): string {
    return this.#providers.get(value) ?? this.#note('provider', value);
  }

  /** The name in `names` of a value of the service. */
  nameOf<Name extends string>(kind: ValueKind, names: Readonly<Record<string, Name>>, value: string) {
    return Object.hasOwn(names, value) ? (names[value] as Name) : this.#note(kind, value);
  }

  #note(kind: ValueKind, value: string): 'UNRECOGNIZED' {
    const seen = `${kind} ${value}`;
    if (!this.#unknown.has(seen) && this.#unknown.size < maxUnknown) {
      this.#unknown.add(seen);
      this.onUnknown(kind, value);
    }
    return 'UNRECOGNIZED';
  }
}
