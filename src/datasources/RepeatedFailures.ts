import { type ErrorCode, GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import type { Runtime } from '../process/Runtime.js';

const firstPauseMs = 1000;

/** What the service, or the way to it, says of one request. */
const counted: ReadonlySet<ErrorCode> = new Set([
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_INVALID_RESPONSE',
  'UPSTREAM_REJECTED',
]);

/** Reads of one thing that failed in a row. */
interface Failure {
  readonly times: number;
  readonly error: GatewayError;
  /** Milliseconds of the monotonic clock. */
  readonly until: number;
}

/**
 * Leaves alone what cannot be read. One failure is nothing; from the second in a row on there is a pause, at first of a
 * second, then twice as long each time. Of this process alone: an outage is no work for the store.
 */
export class RepeatedFailures {
  readonly #failures: BoundedCache<Failure>;

  /** @param max most things remembered */
  constructor(
    max: number,
    private readonly longestPauseMs: number,
    private readonly runtime: Pick<Runtime, 'monotonicNow'>,
  ) {
    this.#failures = new BoundedCache({ max });
  }

  /**
   * Does `read`, which tells of each call that it makes. NOT_FOUND is an answer, no failure.
   * @throws GatewayError the last one again, with the time that is left, during a pause; what `read` throws
   */
  async run<T>(id: string, read: (onCall: () => void) => Promise<T>): Promise<T> {
    this.#throwInPause(id);
    let wasCalled = false;
    try {
      const answer = await read(() => {
        wasCalled = true;
      });
      this.clear(id);
      return answer;
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'NOT_FOUND') this.clear(id);
      else if (error instanceof GatewayError && wasCalled && counted.has(error.code)) this.#note(id, error);
      throw error;
    }
  }

  #throwInPause(id: string): void {
    const { error, until = 0 } = this.#failures.get(id) ?? {};
    const leftMs = until - this.runtime.monotonicNow();
    if (error === undefined || leftMs <= 0) return;
    const { code, message, reason } = error;
    throw new GatewayError(code, message, { reason, retryAfterSeconds: Math.ceil(leftMs / 1000) });
  }

  #note(id: string, error: GatewayError): void {
    const times = (this.#failures.get(id)?.times ?? 0) + 1;
    const pauseMs = times === 1 ? 0 : Math.min(this.longestPauseMs, firstPauseMs * 2 ** (times - 2));
    this.#failures.set(id, { times, error, until: this.runtime.monotonicNow() + pauseMs });
  }

  /** Forgets what is known of `id`, or of all. */
  clear(id?: string): void {
    if (id === undefined) this.#failures.clear();
    else this.#failures.delete(id);
  }
}
