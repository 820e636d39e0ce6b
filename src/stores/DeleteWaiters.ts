import { EventEmitter } from 'node:events';
import { realRuntime } from '../process/Runtime.js';

/** Pauses between two polls of a store, in milliseconds: they double from `firstMs` to `maxMs`, with jitter. */
export interface PollPace {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Callers in this process that wait for a key to be deleted. Their promises never reject, and leave no timer behind. */
export class DeleteWaiters {
  readonly #deletions = new EventEmitter().setMaxListeners(0);

  constructor(private readonly runtime = realRuntime) {}

  /** Resolves when {@link wake} is called with `key`, or after `timeoutMs`. */
  wait(key: string, timeoutMs: number): Promise<void> {
    if (timeoutMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const event = `of ${key}`; // the prefix keeps a key from being the special event "error"
      const done = () => {
        this.runtime.clearTimer(timer);
        this.#deletions.off(event, done);
        resolve();
      };
      const timer = this.runtime.setTimeout(done, timeoutMs);
      this.#deletions.on(event, done);
    });
  }

  /**
   * As {@link wait}, but also polls, so that a lost message only causes a delay. `lastsMs` returns the key's remaining time to
   * live, 0 when it is gone: nobody waits for a dead holder's lease beyond its expiry. Resolves early when polling fails.
   */
  async waitPolling(key: string, timeoutMs: number, pace: PollPace, lastsMs: () => Promise<number>): Promise<void> {
    const giveUpAt = this.runtime.monotonicNow() + timeoutMs;
    for (let pauseMs = pace.firstMs; ; pauseMs = Math.min(pauseMs * 2, pace.maxMs)) {
      const leftMs = Math.min(await lastsMs().catch(() => 0), giveUpAt - this.runtime.monotonicNow());
      if (leftMs <= 0) return;
      await this.wait(key, Math.min(leftMs, pauseMs * (0.5 + this.runtime.random() / 2)));
    }
  }

  wake(key: string): void {
    this.#deletions.emit(`of ${key}`);
  }

  wakeAll(): void {
    for (const event of this.#deletions.eventNames()) this.#deletions.emit(event);
  }
}
