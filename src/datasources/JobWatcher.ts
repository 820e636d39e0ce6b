import { setMaxListeners } from 'node:events';
import { type ErrorCode, GatewayError } from '../errors/errors.js';
import { LatestValue } from '../operations/LatestValue.js';
import type { CallOptions } from '../upstream/ResilientFetch.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import { isTerminal, type JobView, type RefreshJobs, sharedMs } from './RefreshJobs.js';

export interface JobWatcherOptions {
  readonly jobs: RefreshJobs;
  /** Interval after a change, in milliseconds; it grows while nothing changes. */
  readonly pollMinMs: number;
  readonly pollMaxMs: number;
  /** After this time a watch ends, as if the job had nothing more to say, in milliseconds. */
  readonly watchMaxMs: number;
  readonly now: () => number;
  readonly onWatchers: (count: number) => void;
}

export interface WatchOptions extends CallOptions {
  /** Longest time for this watch, in milliseconds. Default `watchMaxMs`. */
  readonly maxMs?: number;
  /** Called once, however the watch ends. */
  readonly onEnd?: () => void;
}

/** Errors that will not pass: the watch ends with them. Others are retried. */
const final: readonly ErrorCode[] = ['NOT_FOUND', 'TAXPAYER_NOT_AUTHORIZED', 'UPSTREAM_REJECTED', 'BAD_USER_INPUT'];

/**
 * Watches jobs for any number of readers with one poll loop per job, which lives as long as it has readers. The pause
 * between two polls is computed from what the shared cache knows, so all processes of a fleet wake at the same moment and
 * the lease lets one of them ask.
 */
export class JobWatcher {
  readonly #loops = new Map<string, PollLoop>();
  #watchers = 0;
  #stopped = false;

  constructor(private readonly options: JobWatcherOptions) {}

  /**
   * The job's present status, then each change; ends after a terminal one, after `watchMaxMs`, or when the watcher stops.
   * A slow reader gets the newest status, not every one. Fails only with an error that will not pass.
   */
  watch(taxpayerId: TaxpayerId, jobId: JobId, { holder, trail, onEnd, maxMs = Infinity }: WatchOptions = {}) {
    const loop = this.#loopOf(taxpayerId, jobId);
    const reader = new LatestValue<JobView>(() => {
      clearTimeout(timer);
      this.options.onWatchers(--this.#watchers);
      loop.leave(reader);
      onEnd?.();
    });
    const timer = setTimeout(() => reader.return(), Math.min(maxMs, this.options.watchMaxMs)).unref();
    this.options.onWatchers(++this.#watchers);
    loop.join(reader, { holder, trail });
    if (this.#stopped) loop.end();
    return reader;
  }

  /** `present` or a later status: the first terminal one, or the last known when the watch ends or `signal` aborts. */
  async settle(
    taxpayerId: TaxpayerId,
    jobId: JobId,
    present: JobView,
    { signal, ...options }: WatchOptions & { readonly signal: AbortSignal },
  ): Promise<JobView> {
    const watch = this.watch(taxpayerId, jobId, options);
    const end = () => watch.return();
    setMaxListeners(0, signal); // each field of a request may wait
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    try {
      let latest = present;
      for await (const view of watch) latest = view;
      return latest;
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  get polledJobs(): number {
    return this.#loops.size;
  }

  /** Drops what is known of a taxpayer's jobs, or of all; those who watch one are told its status anew. */
  forget(taxpayerId?: string): void {
    for (const loop of this.#loops.values()) {
      if (taxpayerId === undefined || loop.taxpayerId === taxpayerId) loop.restart();
    }
  }

  /** Ends every watch cleanly, and those that are still to come. */
  stop(): void {
    this.#stopped = true;
    for (const loop of this.#loops.values()) loop.end();
  }

  #loopOf(taxpayerId: TaxpayerId, jobId: JobId): PollLoop {
    const id = JSON.stringify([taxpayerId, jobId]);
    const running = this.#loops.get(id);
    if (running !== undefined) return running;
    const loop = new PollLoop(taxpayerId, jobId, this.options, () => this.#loops.delete(id));
    this.#loops.set(id, loop);
    return loop;
  }
}

/** One job's polls. Runs while it has readers; leaves no timer behind. */
class PollLoop {
  /** In the order in which polls are made for them. */
  readonly #readers = new Map<LatestValue<JobView>, CallOptions>();
  #latest: JobView | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #ended = false;

  constructor(
    readonly taxpayerId: TaxpayerId,
    private readonly jobId: JobId,
    private readonly options: JobWatcherOptions,
    private readonly onEnd: () => void,
  ) {}

  join(reader: LatestValue<JobView>, call: CallOptions): void {
    const isFirst = this.#readers.size === 0;
    this.#readers.set(reader, call);
    if (this.#latest !== undefined) reader.push(this.#latest);
    // A query may have brought a newer status than our last poll.
    const held = this.options.jobs.held(this.taxpayerId, this.jobId);
    if (held !== undefined && held.observedAt > (this.#latest?.observedAt ?? 0)) this.#publish(held);
    else if (isFirst) void this.#poll();
  }

  leave(reader: LatestValue<JobView>): void {
    this.#readers.delete(reader);
    if (this.#readers.size === 0) this.end();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.onEnd();
    for (const reader of this.#readers.keys()) void reader.return();
  }

  restart(): void {
    this.#latest = undefined;
    this.#schedule(0);
  }

  async #poll(): Promise<void> {
    // Whatever is newer than what we know will do: another process may have polled in this interval.
    const maxAgeMs = this.#latest === undefined ? sharedMs : this.options.now() - this.#latest.observedAt;
    try {
      const view = await this.options.jobs.status(this.taxpayerId, this.jobId, maxAgeMs, this.#nextCall());
      if (this.#ended) return;
      this.#failures = 0;
      this.#publish(view);
    } catch (error) {
      if (!this.#ended) this.#retryOrFail(error);
    }
  }

  /** Polls are made on behalf of the readers in turn, so that one whose calls are refused does not block the others. */
  #nextCall(): CallOptions {
    const [first] = this.#readers;
    if (first === undefined) return {};
    const [reader, call] = first;
    this.#readers.delete(reader);
    this.#readers.set(reader, call);
    return call;
  }

  /** Tells the readers what changed, then ends or schedules the next poll. */
  #publish(view: JobView): void {
    const changed = this.#latest?.job.status !== view.job.status;
    this.#latest = view;
    if (changed) for (const reader of this.#readers.keys()) reader.push(view);
    if (isTerminal(view.job)) this.end();
    else this.#schedule(this.#dueInMs(view));
  }

  #retryOrFail(error: unknown): void {
    // An error without a code is a bug of ours, which every poll would meet again.
    if (!(error instanceof GatewayError) || final.includes(error.code)) {
      for (const reader of this.#readers.keys()) reader.fail(error);
      return;
    }
    // What is refused to one reader is tried for the next.
    const isForAll = error.refused === undefined || this.#readers.size === 1;
    const askedMs = isForAll ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    this.#failures += 1;
    this.#schedule(Math.max(this.#clamped(this.options.pollMinMs * 2 ** this.#failures), askedMs));
  }

  #schedule(pauseMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#poll(), pauseMs);
  }

  /** The same moment in every process that holds the same observation: the jitter comes from it as well. */
  #dueInMs({ observedAt, unchangedSince }: JobView): number {
    const jitter = 0.9 + 0.2 * ((observedAt * 0.618_033_988_75) % 1);
    // Half the time the status has lasted: each pause is half as long again as the last.
    const pauseMs = this.#clamped((observedAt - unchangedSince) / 2) * jitter;
    // Never longer than the pause: the observation may bear the time of a machine whose clock is ahead.
    return Math.min(Math.max(observedAt + pauseMs - this.options.now(), 0), pauseMs);
  }

  #clamped(ms: number): number {
    return Math.min(this.options.pollMaxMs, Math.max(this.options.pollMinMs, ms));
  }
}
