import { setMaxListeners } from 'node:events';
import type { Holder, Places } from '../admission/Places.js';
import type { LeasedCacheOptions } from '../cache/Entry.js';
import type { MemoryKeeper } from '../cache/Forgets.js';
import type { Config } from '../config/config.js';
import { type ErrorCode, GatewayError } from '../errors/errors.js';
import type { Metrics } from '../observability/Metrics.js';
import { LatestValue } from './LatestValue.js';
import type { ReadCall } from './TaxpayerService.js';

/** What is watched: `readAt` is when it was read from the service, by the monotonic clock. */
export interface Timed {
  readonly readAt: number;
}

/** How a {@link Watcher} reads, compares and schedules what it watches, by its id in the cache. Times are in milliseconds. */
interface Watched<View extends Timed> extends Pick<LeasedCacheOptions<View>, 'kind' | 'idsOf'> {
  /** Reads a view that is newer than one that was read at `knownAt`. */
  read(id: string, knownAt: number | undefined, call: ReadCall): View | Promise<View>;
  /** The view in memory; `isFailing`: as it is shown while the service does not answer. */
  known(id: string, isFailing: boolean): View | undefined;
  /** What a view tells its readers. Of consecutive views with the same news, they get only the first. */
  newsOf(view: View): string;
  isFinal(view: View): boolean;
  /** Time from when the view was read to the next poll. */
  intervalMs(view: View): number;
  /** The pause after a failed poll: as long as polls have been failing, at least `first` and at most `longest`. */
  readonly retryMs: { readonly first: number; readonly longest: number };
}

/** `watchMaxMs`: a watch ends normally after this time. `places` tell how many calls of a caller are under way. */
export interface WatcherOptions extends Pick<Config, 'watchMaxMs'> {
  readonly places: Places;
  readonly metrics: Metrics;
}

export interface WatchOptions extends ReadCall {
  /** Longest time for this watch, in milliseconds. Default `watchMaxMs`. */
  readonly maxMs?: number;
  /** Aborting it ends the watch normally. */
  readonly signal?: AbortSignal;
  /** Called once, however the watch ends. */
  readonly onEnd?: () => void;
}

/** Permanent errors, which end the watch. Others are retried. */
const permanent: readonly ErrorCode[] = ['NOT_FOUND', 'TAXPAYER_NOT_AUTHORIZED', 'UPSTREAM_REJECTED'];

/**
 * Serves any number of readers with one poll loop per id, which lives as long as it has readers. The time of the next poll is
 * computed from the view in the shared cache: the process that comes to it first calls the service, and the others, soon after,
 * find its view in the cache.
 */
export class Watcher<View extends Timed> implements MemoryKeeper {
  readonly #loops = new Map<string, PollLoop<View>>();
  #stopped = false;

  constructor(
    private readonly watched: Watched<View>,
    private readonly options: WatcherOptions,
  ) {}

  /**
   * Yields the present view, then each change; ends after a final view, after `watchMaxMs`, or when the watcher stops. A
   * slow reader gets the newest view, not every one. Fails only with a permanent error.
   */
  watch(id: string, { onEnd, signal, maxMs = Infinity, ...call }: WatchOptions = {}) {
    const { places, watchMaxMs, metrics } = this.options;
    const loop = this.#loops.get(id) ?? new PollLoop(id, this.watched, places, () => this.#loops.delete(id));
    this.#loops.set(id, loop);
    const views = new LatestValue<View>(() => {
      clearTimeout(timer);
      metrics.watchers.add(this.watched.kind, -1);
      loop.leave(reader);
      onEnd?.();
    });
    const reader: Reader<View> = { views, call, news: undefined };
    const end = () => void views.return();
    const timer = setTimeout(end, Math.min(maxMs, watchMaxMs)).unref();
    if (signal) setMaxListeners(0, signal); // each field of a request may wait
    signal?.addEventListener('abort', end);
    metrics.watchers.add(this.watched.kind, 1);
    if (this.#stopped || signal?.aborted) end();
    else loop.join(reader);
    return views;
  }

  /** Offers the readers a view that was read for somebody else. They get it at once if it is newer than theirs. */
  offer(id: string, view: View): void {
    this.#loops.get(id)?.offer(view);
  }

  /** Polls at once what is about the taxpayers that `isMeant` selects, because memory has forgotten them. */
  forget(isMeant: (taxpayerId: string) => boolean): void {
    for (const [id, loop] of this.#loops) if (isMeant(this.watched.idsOf(id)[0])) loop.schedule(0);
  }

  /** How many ids are polled. */
  get polled(): number {
    return this.#loops.size;
  }

  /** Ends every watch normally; later ones end as soon as they begin. */
  stop(): void {
    this.#stopped = true;
    for (const loop of this.#loops.values()) loop.end();
  }
}

interface Reader<View> {
  readonly views: LatestValue<View>;
  readonly call: ReadCall;
  /** That of the last view that the reader was given. */
  news: string | undefined;
}

/** The polls of one id. Runs while it has readers; leaves no timer behind. */
class PollLoop<View extends Timed> {
  /** In the order in which polls are made on their behalf. */
  readonly #readers = new Set<Reader<View>>();
  /** The callers on whose behalf polls have begun since the last {@link schedule}. */
  readonly #polling = new Set<Holder>();
  /** When the view of the last answer was read. */
  #latestAt: number | undefined;
  /** Set while polls fail: since when, and until when a reader that joins causes no poll. By the monotonic clock. */
  #failure: { readonly since: number; readonly quietUntil: number } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly id: string,
    private readonly watched: Watched<View>,
    private readonly places: Places,
    private readonly onEnd: () => void,
  ) {}

  join(reader: Reader<View>): void {
    this.#readers.add(reader);
    if (this.#latestAt !== undefined || this.#failure) this.#give();
    // While polls fail, a reader that joins brings the next one forward: to this moment, or to the end of the quiet time. Otherwise
    // it causes a poll only if it was given nothing, and its caller has no poll under way.
    const waitMs = this.#failure ? this.#failure.quietUntil - performance.now() : 0;
    if (waitMs > 0) this.schedule(waitMs);
    else if (this.#failure || (reader.news === undefined && !this.#polling.has(reader.call.holder))) {
      void this.#poll(reader);
    }
  }

  /** Without readers, the polls end. */
  leave(reader: Reader<View>): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    clearTimeout(this.#timer);
    this.onEnd();
  }

  offer(view: View): void {
    if (this.#latestAt === undefined || view.readAt > this.#latestAt) this.#publish(view);
  }

  end(): void {
    for (const { views } of this.#readers) void views.return();
  }

  /**
   * Polls after the pause, and in place of polls under way: what those still read counts as if it were read for somebody else
   * (see {@link offer}).
   */
  schedule(pauseMs: number): void {
    clearTimeout(this.#timer);
    this.#polling.clear();
    this.#timer = setTimeout(() => void this.#poll(), Math.min(pauseMs, longestTimerMs));
  }

  /**
   * Polls on behalf of one caller after the other, until a poll is not refused for a reason that concerns its caller alone, or
   * another poll has found something. For a `newcomer`, polls on its behalf alone: the calls of others may have to wait.
   */
  async #poll(newcomer?: Reader<View>): Promise<void> {
    const timer = this.#timer;
    /** Another poll was scheduled meanwhile, or all readers have left. */
    const isOver = () => this.#timer !== timer || this.#readers.size === 0;
    const asked = new Set<Holder>();
    // Callers pay in turn, but those with fewer calls come first, because a poll waits with the other calls of its caller.
    const callsOf = ({ call }: Reader<View>) => this.places.held('calls', call.holder);
    const payers = newcomer ? [newcomer] : [...this.#readers].sort((one, other) => callsOf(one) - callsOf(other));
    for (const reader of payers) {
      const { holder } = reader.call;
      // One that has left cannot be deleted. The others are added again: the one that was asked last comes last.
      if (asked.has(holder) || !this.#readers.delete(reader)) continue;
      asked.add(holder);
      this.#readers.add(reader);
      this.#polling.add(holder);
      try {
        const view = await this.watched.read(this.id, this.#latestAt, reader.call);
        if (!isOver()) this.#publish(view);
        return;
      } catch (error) {
        if (isOver()) return;
        // A refusal that names another holder, as that of the watchers' share does, concerns every caller.
        const isItsOwn = error instanceof GatewayError && error.onlyFor && error.onlyFor.holder === holder;
        if (!isItsOwn) return this.#retryOrFail(error);
        if (newcomer && this.#failure) return; // the next poll is planned, and soon
      }
    }
    this.#retryAfter(0);
  }

  /** Tells the readers what changed, then ends or schedules the next poll. */
  #publish(view: View): void {
    this.#failure = undefined;
    this.#latestAt = view.readAt;
    this.#give(view);
    const intervalMs = this.watched.intervalMs(view);
    if (this.watched.isFinal(view)) this.end();
    else this.schedule(Math.min(intervalMs, Math.max(0, view.readAt + intervalMs - performance.now())));
  }

  /** After a failure that concerns all readers. */
  #retryOrFail(error: unknown): void {
    // An error without a code is a bug of ours, which every poll would meet again.
    if (!(error instanceof GatewayError) || permanent.includes(error.code)) {
      for (const { views } of this.#readers) views.fail(error);
      return;
    }
    const { first } = this.watched.retryMs;
    this.#retryAfter(withJitter(Math.max(first, 1000 * (error.retryAfterSeconds ?? 0))));
  }

  /** Polls again after the pause, which is at least `leastMs`. */
  #retryAfter(leastMs: number): void {
    const { first, longest } = this.watched.retryMs;
    const now = performance.now();
    const since = this.#failure?.since ?? now;
    this.#failure = { since, quietUntil: now + leastMs };
    this.#give();
    const usualMs = Math.min(longest, Math.max(first, now - since));
    this.schedule(Math.max(withJitter(usualMs), leastMs));
  }

  /** Gives a view, or else the known one, to the readers that have none yet and, unless polls fail, to those to whom it is news. */
  #give(view = this.watched.known(this.id, this.#failure !== undefined)): void {
    if (view === undefined) return;
    const news = this.watched.newsOf(view);
    for (const reader of this.#readers) {
      if (reader.news !== undefined && (this.#failure || reader.news === news)) continue;
      reader.news = news;
      reader.views.push(view);
    }
  }
}

/** The longest a timer of Node.js can be, in milliseconds; longer ones fire at once. */
const longestTimerMs = 2_147_483_647;

/** Up to a tenth longer, because all watchers wait for the same moment when the budget is spent. */
const withJitter = (ms: number): number => ms * (1 + Math.random() / 10);
