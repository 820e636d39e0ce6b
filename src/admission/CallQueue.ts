import { type Holder, type Places, type Release, rateLimited } from './Places.js';
import type { Quota } from './Quota.js';

/** Estimated time that one call, with all its steps, keeps the event loop busy, in milliseconds. */
const callWorkMs = 0.5;

interface CallQueueOptions {
  readonly places: Places;
  readonly resource: 'calls' | 'decisions';
  /** Most calls that one holder, or all callers without an identity together, may have waiting. */
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  /** A call that has its place waits for its turn here before it begins. */
  readonly quota?: Pick<Quota, 'resume'> | undefined;
}

/** Begins a call that waits. `release` gives back the place that was taken for it. */
type Begin = (release: Release) => void;

/** Calls to the service, or to the decision point: each waits until its caller may have one more under way. */
export class CallQueue {
  /** The calls of each holder in order of arrival. Holders take turns: one whose call begins moves to the end. */
  readonly #waiting = new Map<Holder, Begin[]>();

  constructor(private readonly options: CallQueueOptions) {}

  /**
   * Runs `work` in a place of its own, at once when one is free. Also throws what `work` throws.
   * @throws GatewayError RATE_LIMITED (429) when too much of the holder's work waits already, or the wait took too long
   */
  async run<T>(holder: Holder, work: () => T | Promise<T>): Promise<T> {
    const { places, resource, quota } = this.options;
    const release = places.hasRoom(resource, holder) ? places.take(resource, holder) : await this.#waitForPlace(holder);
    try {
      await quota?.resume(holder, callWorkMs);
      return await work();
    } finally {
      release();
      this.#beginNext();
    }
  }

  #waitForPlace(holder: Holder): Promise<Release> {
    const { resource, maxWaiting, maxWaitMs } = this.options;
    const refused = () =>
      rateLimited(
        `At most ${maxWaiting} ${resource} per caller may wait, for at most ${maxWaitMs} ms (UPSTREAM_DEADLINE_MS)`,
        { onlyFor: { holder } },
      );
    const line = this.#waiting.get(holder) ?? [];
    if (line.length >= maxWaiting) throw refused();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        line.splice(line.indexOf(begin), 1);
        if (line.length === 0) this.#waiting.delete(holder);
        reject(refused());
      }, maxWaitMs);
      const begin: Begin = (release) => {
        clearTimeout(timer);
        resolve(release);
      };
      line.push(begin);
      this.#waiting.set(holder, line);
    });
  }

  /** Gives a free place to the first holder in line that may have one more. */
  #beginNext(): void {
    const { places, resource } = this.options;
    for (const [holder, line] of this.#waiting) {
      if (!places.hasRoom(resource, holder)) continue;
      const begin = line.shift();
      this.#waiting.delete(holder);
      if (line.length > 0) this.#waiting.set(holder, line);
      begin?.(places.take(resource, holder));
      return;
    }
  }
}
