import { type ErrorCode, GatewayError } from '../errors/errors.js';
import type { CallOptions } from '../upstream/ResilientFetch.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import { isTerminal, type JobView, type RefreshJobs, sharedMs } from './RefreshJobs.js';
import { Watch } from './Watch.js';

export interface JobWatcherOptions {
  readonly jobs: RefreshJobs;
  /** Interval after a change, in milliseconds; it grows while nothing changes. */
  readonly pollMinMs: number;
  readonly pollMaxMs: number;
  /** After this time a watch ends, as if the job had nothing more to say, in milliseconds. */
  readonly watchMaxMs: number;
  readonly now?: () => number;
  readonly onWatchers?: (count: number) => void;
}

export interface WatchOptions extends CallOptions {
  /** Called once, however the watch ends. */
  readonly onEnd?: () => void;
}

/** After these the service will not answer differently: the watch ends with the error. Others pass, and are waited out. */
const final: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'NOT_FOUND',
  'TAXPAYER_NOT_AUTHORIZED',
  'UPSTREAM_REJECTED',
  'BAD_USER_INPUT',
]);

/** The part of the time a status has lasted that passes until the next poll: each pause is half as long again as the last. */
const growth = 0.5;

/**
 * Watches jobs for any number of readers with one poll loop per job, which lives as long as somebody reads. The pause
 * between two polls is computed from what the shared cache knows, so all processes of a fleet wake at the same moment and
 * the lease lets one of them ask.
 */
export class JobWatcher {
  readonly #options: JobWatcherOptions;
  readonly #now: () => number;
  readonly #loops = new Map<string, PollLoop>();
  readonly #waiting = new WeakMap<AbortSignal, Set<() => void>>();
  #watchers = 0;
  #stopped = false;

  constructor(options: JobWatcherOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * The job's present status, then each change; ends after a terminal one, after `watchMaxMs`, or when the watcher stops.
   * A slow reader gets the newest status, not every one. Fails only with an error that will not pass. After {@link stop} it
   * has ended before it began.
   */
  watch(taxpayerId: TaxpayerId, jobId: JobId, { holder, onEnd = () => {} }: WatchOptions = {}): Watch<JobView> {
    const id = JSON.stringify([taxpayerId, jobId]);
    const loop = this.#loops.get(id) ?? this.#begin(id, taxpayerId, jobId);
    const watch = new Watch<JobView>(this.#options.watchMaxMs, () => {
      this.#count(-1);
      loop.leave(watch);
      onEnd();
    });
    this.#count(1);
    loop.join(watch, { holder });
    if (this.#stopped) loop.end();
    return watch;
  }

  /** `present` or a later status: the first terminal one, or the last known when `waitMs` are over or `signal` aborts. */
  async settle(
    taxpayerId: TaxpayerId,
    jobId: JobId,
    present: JobView,
    limits: CallOptions & { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<JobView> {
    const watch = this.watch(taxpayerId, jobId, { holder: limits.holder });
    const end = () => void watch.return();
    const timer = setTimeout(end, limits.waitMs);
    const stay = this.#onAbort(limits.signal, end);
    try {
      let latest = present;
      for await (const view of watch) latest = view;
      return latest;
    } finally {
      clearTimeout(timer);
      stay();
    }
  }

  /** Calls `end` when `signal` aborts. All who wait for the same signal, as the fields of a request do, share a listener. */
  #onAbort(signal: AbortSignal, end: () => void): () => void {
    if (signal.aborted) end();
    let waiting = this.#waiting.get(signal);
    if (waiting === undefined) {
      const all = new Set<() => void>();
      const endAll = () => {
        for (const each of all) each();
      };
      signal.addEventListener('abort', endAll, { once: true });
      this.#waiting.set(signal, all);
      waiting = all;
    }
    waiting.add(end);
    return () => void waiting.delete(end);
  }

  /** How many jobs are polled now. */
  get polledJobs(): number {
    return this.#loops.size;
  }

  /** Ends every watch cleanly, and those that are still to come. */
  stop(): void {
    this.#stopped = true;
    for (const loop of this.#loops.values()) loop.end();
  }

  #begin(id: string, taxpayerId: TaxpayerId, jobId: JobId): PollLoop {
    const loop = new PollLoop({
      held: () => this.#options.jobs.held(taxpayerId, jobId),
      read: (maxAgeMs, call) => this.#options.jobs.status(taxpayerId, jobId, maxAgeMs, call),
      pauseAfter: (view) => this.#pauseAfter(view),
      pauseAfterFailures: (failures) => this.#clamp(this.#options.pollMinMs * 2 ** failures),
      now: this.#now,
      onEnd: () => {
        if (this.#loops.get(id) === loop) this.#loops.delete(id);
      },
    });
    this.#loops.set(id, loop);
    return loop;
  }

  /** The same in every process that holds the same observation: the jitter comes from it as well. */
  #pauseAfter({ observedAt, unchangedSince }: JobView): number {
    const jitter = 0.9 + 0.2 * ((observedAt * 0.618_033_988_75) % 1);
    return this.#clamp((observedAt - unchangedSince) * growth) * jitter;
  }

  #clamp(ms: number): number {
    return Math.min(this.#options.pollMaxMs, Math.max(this.#options.pollMinMs, ms));
  }

  #count(change: 1 | -1): void {
    this.#watchers += change;
    this.#options.onWatchers?.(this.#watchers);
  }
}

interface PollLoopOptions {
  /** What this process knows without asking, when it is fresh or final. */
  readonly held: () => JobView | undefined;
  readonly read: (maxAgeMs: number, call: CallOptions) => Promise<JobView>;
  readonly pauseAfter: (view: JobView) => number;
  readonly pauseAfterFailures: (failures: number) => number;
  readonly now: () => number;
  readonly onEnd: () => void;
}

/** One job's polls. Runs while it has readers; leaves no timer behind. */
class PollLoop {
  readonly #options: PollLoopOptions;
  /** In the order in which polls are made for them. */
  readonly #readers = new Map<Watch<JobView>, CallOptions>();
  #latest: JobView | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #ended = false;

  constructor(options: PollLoopOptions) {
    this.#options = options;
  }

  join(reader: Watch<JobView>, call: CallOptions): void {
    const isFirst = this.#readers.size === 0;
    this.#readers.set(reader, call);
    if (this.#latest !== undefined) reader.push(this.#latest);
    // Somebody's query may have seen more than our last poll.
    const held = this.#options.held();
    if (held !== undefined && held.observedAt > (this.#latest?.observedAt ?? 0)) this.#publish(held);
    else if (isFirst) void this.#poll();
  }

  leave(reader: Watch<JobView>): void {
    this.#readers.delete(reader);
    if (this.#readers.size === 0) this.end();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#options.onEnd();
    for (const reader of this.#readers.keys()) void reader.return();
  }

  async #poll(): Promise<void> {
    // Whatever is newer than what we know will do: somebody of the fleet polled at this beat, and we may be late.
    const maxAgeMs = this.#latest === undefined ? sharedMs : this.#options.now() - this.#latest.observedAt;
    try {
      const view = await this.#options.read(maxAgeMs, this.#nextHolder());
      if (this.#ended) return;
      this.#failures = 0;
      this.#publish(view);
    } catch (error) {
      if (this.#ended) return;
      this.#wait(error);
    }
  }

  /** The readers take turns: none pays for all, and none whose calls are refused holds the others up. */
  #nextHolder(): CallOptions {
    for (const [reader, call] of this.#readers) {
      this.#readers.delete(reader);
      this.#readers.set(reader, call);
      return call;
    }
    return {};
  }

  /** Tells the readers what changed, and ends or waits for the next beat. */
  #publish(view: JobView): void {
    const changed = this.#latest?.job.status !== view.job.status;
    this.#latest = view;
    if (changed) for (const reader of this.#readers.keys()) reader.push(view);
    if (isTerminal(view.job)) {
      this.end();
      return;
    }
    const pauseMs = this.#options.pauseAfter(view);
    const dueInMs = view.observedAt + pauseMs - this.#options.now();
    // Never longer than the pause: the observation may bear the time of a machine whose clock is ahead.
    this.#schedule(Math.min(Math.max(dueInMs, 0), pauseMs));
  }

  #wait(error: unknown): void {
    // What is no coded error is a bug of ours, which would come again with every poll.
    if (!(error instanceof GatewayError) || final.has(error.code)) {
      for (const reader of this.#readers.keys()) reader.fail(error);
      this.end();
      return;
    }
    // What is refused to one reader is tried for the next.
    const isForAll = error.refused === undefined || this.#readers.size === 1;
    const askedMs = isForAll ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    this.#failures += 1;
    this.#schedule(Math.max(this.#options.pauseAfterFailures(this.#failures), askedMs));
  }

  #schedule(pauseMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#poll(), pauseMs);
  }
}
