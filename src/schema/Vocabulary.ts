import type { ProviderEntry } from './Provider.js';
import { RefreshJobStatus, TaxpayerStatus } from './statuses.js';

export type UnknownValueListener = (kind: 'provider' | 'taxpayer-status' | 'job-status', value: string) => void;

/** Unknown values that are told apart; further ones are all the same to us, so that an upstream cannot fill our memory. */
const maxUnknown = 100;

/** Translates the service's closed sets (interface, 2.4 and part 3) into the schema's enums. */
export class Vocabulary {
  readonly #providers: ReadonlyMap<string, string>;
  readonly #onUnknown: UnknownValueListener;
  readonly #known = new Set<string>();

  /** `onUnknown` is called once for each value that the schema has no name for. */
  constructor(providers: readonly ProviderEntry[], onUnknown: UnknownValueListener) {
    this.#providers = new Map(providers.map(({ value, name }) => [value, name]));
    this.#onUnknown = onUnknown;
  }

  provider(value: string): string {
    return this.#providers.get(value) ?? this.#unknown('provider', value);
  }

  taxpayerStatus(value: string): TaxpayerStatus {
    return Object.hasOwn(TaxpayerStatus, value) ? (value as TaxpayerStatus) : this.#unknown('taxpayer-status', value);
  }

  jobStatus(value: string): RefreshJobStatus {
    switch (value) {
      case 'processing':
        return RefreshJobStatus.PROCESSING;
      case 'completed':
        return RefreshJobStatus.COMPLETED;
      case 'failed':
        return RefreshJobStatus.FAILED;
      default:
        return this.#unknown('job-status', value);
    }
  }

  #unknown(kind: Parameters<UnknownValueListener>[0], value: string): 'UNRECOGNIZED' {
    const seen = `${kind} ${value}`;
    if (!this.#known.has(seen) && this.#known.size < maxUnknown) {
      this.#known.add(seen);
      this.#onUnknown(kind, value);
    }
    return 'UNRECOGNIZED';
  }
}
