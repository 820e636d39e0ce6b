import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';

const firstPauseMs = 1000;

/** Consecutive failed reads of one id. */
interface Failure {
  readonly error: GatewayError;
  readonly pauseMs: number;
  /** End of the pause, in milliseconds of the monotonic clock. */
  readonly until: number;
}

/**
 * Backs off from records that cannot be read. The first failure has no effect; the second in a row starts a pause of one
 * second, which doubles with each further failure up to `longestPauseMs`. Per process: an outage puts no load on the store.
 */
export class RepeatedFailures {
  readonly #failures: BoundedCache<Failure>;

  /** @param max most ids remembered */
  constructor(
    max: number,
    private readonly longestPauseMs: number,
  ) {
    this.#failures = new BoundedCache({ max });
  }

  /**
   * Runs `read`, which reports each call that it makes. Only failures of the service are counted.
   * @throws GatewayError during a pause, the last error with the time that is left; otherwise what `read` throws
   */
  async run<T>(id: string, read: (onCall: () => void) => Promise<T>): Promise<T> {
    const last = this.#failures.get(id);
    const leftMs = (last?.until ?? 0) - performance.now();
    if (last && leftMs > 0) {
      const { code, message, reason } = last.error;
      throw new GatewayError(code, message, { reason, retryAfterSeconds: Math.ceil(leftMs / 1000) });
    }
    let wasCalled = false;
    try {
      const answer = await read(() => (wasCalled = true));
      this.#failures.delete(id);
      return answer;
    } catch (error) {
      // After a 429 the whole endpoint pauses, for longer than this record may.
      const isOfRecord = error instanceof GatewayError && /^UPSTREAM_(?!RATE_LIMITED)/.test(error.code);
      if (wasCalled && isOfRecord) {
        const pauseMs = last ? Math.min(this.longestPauseMs, Math.max(firstPauseMs, 2 * last.pauseMs)) : 0;
        this.#failures.set(id, { error, pauseMs, until: performance.now() + pauseMs });
      }
      throw error;
    }
  }

  forget(isMeant: (id: string) => boolean): void {
    for (const id of [...this.#failures.keys()]) if (isMeant(id)) this.#failures.delete(id);
  }
}
