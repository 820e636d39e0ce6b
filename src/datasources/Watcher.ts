import { setMaxListeners } from 'node:events';
import { type ErrorCode, GatewayError } from '../errors/errors.js';
import { longestTimerMs } from '../process/pause.js';
import { LatestValue } from './LatestValue.js';
import type { ReadCall } from './reading.js';

/** What is watched: `readAt` is when it was read from the service, by the monotonic clock. */
interface Timed {
  readonly readAt: number;
}

/** How a {@link Watcher} reads, compares and schedules what it watches. Times are in milliseconds. */
export interface Watched<Key, View extends Timed> {
  /** Reads a view that is newer than `known`. */
  read(key: Key, known: View | undefined, call: ReadCall): View | Promise<View>;
  /** The view that a new reader gets while reads fail. Default: that of the last successful read. */
  standIn?(key: Key): View | undefined;
  isChange(from: View, to: View): boolean;
  isFinal(view: View): boolean;
  /** Time from when the view was read to the next poll, so that processes with the same view poll at the same moment. */
  intervalMs(view: View): number;
  /** The pause after a failed poll, which doubles with each further failure in a row, from `first` up to `longest`. */
  readonly retryMs: { readonly first: number; readonly longest: number };
}

interface WatcherOptions<Key, View extends Timed> {
  readonly watched: Watched<Key, View>;
  /** A watch ends normally after this time, in milliseconds. */
  readonly watchMaxMs: number;
  readonly onWatchers: (count: number) => void;
}

export type WatcherSurroundings = Omit<WatcherOptions<never, never>, 'watched'>;

export interface WatchOptions extends ReadCall {
  /** Longest time for this watch, in milliseconds. Default `watchMaxMs`. */
  readonly maxMs?: number;
  /** Aborting it ends the watch normally. */
  readonly signal?: AbortSignal;
  /** Called once, however the watch ends. */
  readonly onEnd?: () => void;
}

/** Permanent errors, which end the watch. Others are retried. */
const final: readonly ErrorCode[] = ['NOT_FOUND', 'TAXPAYER_NOT_AUTHORIZED', 'UPSTREAM_REJECTED', 'BAD_USER_INPUT'];

/**
 * Serves any number of readers with one poll loop per key, which lives as long as it has readers. The interval between two
 * polls is computed from the view in the shared cache, so all processes of a fleet poll at the same moment, and the lease
 * lets only one of them call the service.
 */
export class Watcher<Key, View extends Timed> {
  readonly #loops = new Map<string, PollLoop<Key, View>>();
  #watchers = 0;
  #stopped = false;

  constructor(private readonly options: WatcherOptions<Key, View>) {}

  /**
   * Yields the present view, then each change; ends after a final view, after `watchMaxMs`, or when the watcher stops. A
   * slow reader gets the newest view, not every one. Fails only with a permanent error.
   */
  watch(key: Key, { onEnd, signal, maxMs = Infinity, ...call }: WatchOptions = {}) {
    const loop = this.#loopOf(key);
    const reader = new LatestValue<View>(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      this.options.onWatchers(--this.#watchers);
      loop.leave(reader);
      onEnd?.();
    });
    const end = () => void reader.return();
    const timer = setTimeout(end, Math.min(maxMs, this.options.watchMaxMs)).unref();
    if (signal) setMaxListeners(0, signal); // each field of a request may wait
    signal?.addEventListener('abort', end);
    this.options.onWatchers(++this.#watchers);
    if (this.#stopped || signal?.aborted) end();
    else loop.join(reader, call);
    return reader;
  }

  /** Resolves with the first final view, or with the last view known when the watch ends. */
  async settle(key: Key, present: View, options: WatchOptions): Promise<View> {
    let latest = present;
    for await (const view of this.watch(key, options)) latest = view;
    return latest;
  }

  /** Gives the readers at once a view that was read for somebody else. */
  see(key: Key, view: View): void {
    if (this.#loops.size > 0) this.#loops.get(idOf(key))?.see(view);
  }

  /** Drops the views of the keys that `isMeant` selects, and polls again at once for their readers. */
  forget(isMeant: (key: Key) => boolean): void {
    for (const loop of this.#loops.values()) if (isMeant(loop.key)) loop.restart();
  }

  /** How many keys are polled. */
  get polled(): number {
    return this.#loops.size;
  }

  /** Ends every watch normally; later ones end as soon as they begin. */
  stop(): void {
    this.#stopped = true;
    for (const loop of this.#loops.values()) loop.end();
  }

  #loopOf(key: Key): PollLoop<Key, View> {
    const id = idOf(key);
    const running = this.#loops.get(id);
    if (running !== undefined) return running;
    const loop = new PollLoop(key, this.options.watched, () => this.#loops.delete(id));
    this.#loops.set(id, loop);
    return loop;
  }
}

function idOf(key: unknown): string {
  return JSON.stringify(key);
}

/** The polls of one key. Runs while it has readers; leaves no timer behind. */
class PollLoop<Key, View extends Timed> {
  /** In the order in which polls are made on their behalf, each with the options of its calls. */
  readonly #readers = new Map<LatestValue<View>, ReadCall>();
  #latest: View | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #ended = false;

  constructor(
    readonly key: Key,
    private readonly watched: Watched<Key, View>,
    private readonly onEnd: () => void,
  ) {}

  join(reader: LatestValue<View>, call: ReadCall): void {
    this.#readers.set(reader, call);
    this.#give(this.#failures > 0 ? this.#standIn() : this.#latest);
    if (this.#readers.size === 1) void this.#poll();
  }

  leave(reader: LatestValue<View>): void {
    this.#readers.delete(reader);
    if (this.#readers.size === 0) this.end();
  }

  see(view: View): void {
    if (this.#latest === undefined || view.readAt > this.#latest.readAt) this.#publish(view);
  }

  restart(): void {
    this.#latest = undefined;
    for (const reader of this.#readers.keys()) reader.latest = undefined;
    this.#schedule(0);
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.onEnd();
    for (const reader of this.#readers.keys()) void reader.return();
  }

  /** Polls are made on behalf of the readers in turn, so that one whose calls are refused does not block the others. */
  async #poll(): Promise<void> {
    const [first] = this.#readers;
    if (first === undefined) return;
    const [reader, call] = first;
    this.#readers.delete(reader);
    this.#readers.set(reader, call);
    try {
      const view = await this.watched.read(this.key, this.#latest, call);
      if (!this.#ended) this.#publish(view);
    } catch (error) {
      if (!this.#ended) this.#retryOrFail(error, reader);
    }
  }

  /** Tells the readers what changed, then ends or schedules the next poll. */
  #publish(view: View): void {
    this.#failures = 0;
    this.#latest = view;
    this.#give(view, (latest) => this.watched.isChange(latest, view));
    const intervalMs = this.watched.intervalMs(view);
    if (this.watched.isFinal(view)) this.end();
    else this.#schedule(Math.min(intervalMs, Math.max(0, view.readAt + intervalMs - performance.now())));
  }

  /** `reader`: on whose behalf the poll was made. */
  #retryOrFail(error: unknown, reader: LatestValue<View>): void {
    // An error without a code is a bug of ours, which every poll would meet again.
    if (!(error instanceof GatewayError) || (final.includes(error.code) && !error.onlyFor)) {
      for (const each of this.#readers.keys()) each.fail(error);
      return;
    }
    if (final.includes(error.code)) reader.fail(error);
    if (this.#ended) return; // that was the last reader
    const { first, longest } = this.watched.retryMs;
    const usualMs = Math.min(longest, first * 2 ** this.#failures);
    this.#failures += 1;
    if ([...this.#readers.keys()].some(({ latest }) => latest === undefined)) this.#give(this.#standIn());
    // A refusal that concerns one reader makes no call, and the next poll may be made for another.
    const askedMs = error.onlyFor === undefined ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    // With jitter, because all watchers wait for the same moment when the budget is spent.
    this.#schedule(Math.max(usualMs, askedMs) * (1 + Math.random() / 10));
  }

  #standIn(): View | undefined {
    return this.watched.standIn ? this.watched.standIn(this.key) : this.#latest;
  }

  /** Gives a view to the readers that have none yet, and to those for which it `isNews`. */
  #give(view: View | undefined, isNews: (latest: View) => boolean = () => false): void {
    if (view === undefined) return;
    for (const reader of this.#readers.keys()) {
      if (reader.latest === undefined || isNews(reader.latest)) reader.push(view);
    }
  }

  #schedule(pauseMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#poll(), Math.min(pauseMs, longestTimerMs));
  }
}
