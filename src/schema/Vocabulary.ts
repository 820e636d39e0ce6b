import type { ProviderEntry } from './Provider.js';

/** The kinds of values that the service may extend; also a label of metrics. */
type ValueKind = 'provider' | 'taxpayer-status' | 'job-status';

/** A class of schema objects, each of which shows what a datasource found. */
export type ShownType<View, Shown> = new (view: View, vocabulary: Vocabulary) => Shown;

/** Most unknown values remembered one by one, so that the service cannot fill our memory. */
const maxUnknown = 100;

/** Translates what the datasources found into the words of the schema. */
export class Vocabulary {
  /** The schema's names of the providers, by the service's. */
  readonly providers: Readonly<Record<string, string>>;
  readonly #unknown = new Set<string>();
  readonly #shown = new WeakMap<object, unknown>();

  /** `onUnknown` is called once for each value that the schema has no name for. */
  constructor(
    providers: readonly ProviderEntry[],
    private readonly onUnknown: (kind: ValueKind, value: string) => void,
  ) {
    this.providers = Object.fromEntries(providers.map(({ value, name }) => [value, name]));
  }

  /** Converts a view to its schema object, once per view. */
  show<View extends object, Shown>(type: ShownType<View, Shown>, view: View): Shown {
    const known = this.#shown.get(view);
    if (known !== undefined) return known as Shown;
    const shown = new type(view, this);
    this.#shown.set(view, shown);
    return shown;
  }

  /** The schema's name for a value of the service; UNRECOGNIZED when `names` has none. */
  nameOf<Name extends string>(kind: ValueKind, names: Readonly<Record<string, Name>>, value: string) {
    if (Object.hasOwn(names, value)) return names[value] as Name;
    const seen = `${kind} ${value}`;
    if (!this.#unknown.has(seen) && this.#unknown.size < maxUnknown) {
      this.#unknown.add(seen);
      this.onUnknown(kind, value);
    }
    return 'UNRECOGNIZED' as const;
  }
}
