import { type Holder, type Places, type Release, rateLimited } from './Places.js';

export interface CallQueueOptions {
  readonly places: Places;
  /** Most calls that one holder, or all callers without an identity together, may have waiting. */
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  /** Called for each arrival, also for those that wait or are refused. */
  readonly onEnter?: ((holder: Holder) => void) | undefined;
}

/** A call that waits for a place. */
interface Waiting {
  readonly holder: Holder;
  readonly begin: (release: Release) => void;
}

/** Calls to the service: each waits until its caller may have one more under way. */
export class CallQueue {
  /** In order of arrival. */
  readonly #waiting = new Set<Waiting>();
  #whenIdle: (() => void)[] = [];

  constructor(private readonly options: CallQueueOptions) {}

  /**
   * Runs `work` in a place of its own, at once when one is free. Also throws what `work` throws.
   * @throws GatewayError RATE_LIMITED (429) when too much of the holder's work waits already, or the wait took too long
   */
  async run<T>(holder: Holder, work: () => T | Promise<T>): Promise<T> {
    const { places, onEnter } = this.options;
    onEnter?.(holder);
    const release = places.hasRoom('calls', holder) ? places.take('calls', holder) : await this.#place(holder);
    try {
      return await work();
    } finally {
      release();
      this.#beginNext();
    }
  }

  /** Resolves once no call is under way or waits. */
  async whenIdle(): Promise<void> {
    if (this.options.places.held('calls') > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #place(holder: Holder): Promise<Release> {
    const { maxWaiting, maxWaitMs } = this.options;
    const tooMuch = 'This caller has too many calls to the service under way and waiting';
    const refused = () => rateLimited(tooMuch, { onlyFor: { holder } });
    if ([...this.#waiting].filter((one) => one.holder === holder).length >= maxWaiting) throw refused();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiting);
        reject(refused());
      }, maxWaitMs);
      const begin = (release: Release) => {
        clearTimeout(timer);
        resolve(release);
      };
      const waiting: Waiting = { holder, begin };
      this.#waiting.add(waiting);
    });
  }

  /** Gives a free place to the holder with the fewest; among equals, to the one that has waited longest. */
  #beginNext(): void {
    const { places } = this.options;
    let next: Waiting | undefined;
    for (const one of this.#waiting) {
      const isNext = next === undefined || places.held('calls', one.holder) < places.held('calls', next.holder);
      if (isNext && places.hasRoom('calls', one.holder)) next = one;
    }
    if (next !== undefined) {
      this.#waiting.delete(next);
      next.begin(places.take('calls', next.holder));
    } else if (places.held('calls') === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}
