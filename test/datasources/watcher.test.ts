import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Watched, Watcher } from '../../src/datasources/Watcher.js';
import { GatewayError } from '../../src/errors/errors.js';
import type { CallOptions } from '../../src/upstream/ResilientFetch.js';
import { restorePlatform } from '../support/platform.js';
import { VirtualTime } from '../support/VirtualTime.js';

/** A number that changes; from 100 on it is final. */
interface View {
  readonly value: number;
  readonly readAt: number;
}

const pollMs = 1000;
const maxMs = 60_000;
const unavailable = (retryAfterSeconds?: number, holder?: string) =>
  new GatewayError('UPSTREAM_UNAVAILABLE', 'away', {
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(holder !== undefined && { onlyFor: { holder } }),
  });

describe('Watcher', () => {
  let time: VirtualTime;
  let watcher: Watcher<string, View>;
  /** What the next polls bring; the last is brought again and again. */
  let brings: (number | Error)[];
  let polls: {
    readonly at: number;
    readonly key: string;
    readonly known: number | undefined;
    readonly call: CallOptions;
  }[];
  let held: View | undefined;
  let standIn: View | undefined;
  let counts: number[];
  beforeEach(() => {
    time = new VirtualTime(0);
    time.install();
    [brings, polls, held, standIn, counts] = [[1], [], undefined, undefined, []];
    watcher = newWatcher();
  });

  afterEach(restorePlatform);

  function newWatcher(own: Partial<Watched<string, View>> = {}, watchMaxMs = maxMs) {
    const watched: Watched<string, View> = {
      held: () => held,
      standIn: (_, known) => standIn ?? known,
      read: async (key, known, call) => {
        polls.push({ at: time.now, key, known: known?.value, call });
        const next = (brings.length > 1 ? brings.shift() : brings[0]) as number | Error;
        if (next instanceof Error) throw next;
        return { value: next, readAt: time.now };
      },
      readAt: (view) => view.readAt,
      isChange: (from, to) => from.value !== to.value,
      isFinal: (view) => view.value >= 100,
      dueInMs: () => pollMs,
      retryInMs: (failures, askedMs) => Math.max(askedMs, failures * 10),
      ...own,
    };
    return new Watcher({ watched, watchMaxMs, onWatchers: (count) => counts.push(count) });
  }

  /** Reads in the background; what was read so far, and how it ended. */
  function follow(key: string, options: Parameters<typeof watcher.watch>[1] = {}) {
    const stream = watcher.watch(key, options);
    const seen: (number | string)[] = [];
    const end = (async () => {
      try {
        for await (const { value } of stream) seen.push(value);
        seen.push('end');
      } catch (error) {
        seen.push((error as GatewayError).code ?? String(error));
      }
    })();
    return { seen, end, stop: () => stream.return() };
  }
  const pass = async (ms: number) => {
    await nextTurn(); // what was begun now gets as far as it can
    await time.runUntil(time.now + ms);
    await nextTurn();
  };
  const pollTimes = () => polls.map(({ at }) => at);

  it('polls at once and then when it is due, tells changes alone, and ends with a final one', async () => {
    brings = [1, 1, 2, 100];
    const { seen } = follow('key');
    await pass(10 * pollMs);
    expect(seen).toEqual([1, 2, 100, 'end']);
    expect(pollTimes()).toEqual([0, pollMs, 2 * pollMs, 3 * pollMs]);
    expect(polls.map(({ known }) => known)).toEqual([undefined, 1, 1, 2]);
    expect(watcher.polled).toBe(0);
    expect(counts).toEqual([1, 0]);
  });

  it('polls once for all readers of a key, and apart for two keys', async () => {
    const both = [follow('one'), follow('one'), follow('two')];
    await pass(pollMs + 1);
    expect(polls.map(({ key }) => key).sort()).toEqual(['one', 'one', 'two', 'two']);
    expect(both.map(({ seen }) => seen)).toEqual([[1], [1], [1]]);
    expect(watcher.polled).toBe(2);
    expect(counts).toEqual([1, 2, 3]);
  });

  it('gives a new reader what is known, and what memory holds when that is newer', async () => {
    follow('key');
    await pass(1);
    const second = follow('key');
    await pass(1);
    expect(second.seen).toEqual([1]);
    expect(polls).toHaveLength(1);
    held = { value: 7, readAt: time.now };
    const third = follow('key');
    await pass(1);
    expect(third.seen.at(-1)).toBe(7);
    expect(second.seen).toEqual([1, 7]);
    held = { value: 5, readAt: 0 };
    const fourth = follow('key');
    await pass(1);
    expect(fourth.seen).toEqual([7]);
    expect(polls).toHaveLength(1);
  });

  it('begins with what memory holds, without a poll until that is due', async () => {
    held = { value: 3, readAt: 0 };
    const { seen } = follow('key');
    await pass(pollMs - 1);
    expect([seen, polls.length]).toEqual([[3], 0]);
    await pass(2);
    expect(polls).toHaveLength(1);
  });

  it('tells at once what was read for somebody else, unless it knows something newer', async () => {
    const { seen } = follow('key');
    await pass(10);
    watcher.see('key', { value: 8, readAt: time.now });
    watcher.see('key', { value: 9, readAt: 1 });
    watcher.see('other', { value: 10, readAt: time.now });
    await pass(10);
    expect(seen).toEqual([1, 8]);
    await pass(pollMs - 15);
    expect(polls).toHaveLength(1); // it counts from what was seen
    await pass(10);
    expect(polls).toHaveLength(2);
  });

  it('polls no more when its last reader has gone', async () => {
    const [one, two] = [follow('key'), follow('key')];
    await pass(1);
    one.stop();
    await pass(pollMs);
    expect(polls).toHaveLength(2);
    two.stop();
    await pass(10 * pollMs);
    expect(polls).toHaveLength(2);
    expect(one.seen).toEqual([1, 'end']);
    expect(counts).toEqual([1, 2, 1, 0]);
    expect(watcher.polled).toBe(0);
  });

  it('throws away what a poll brings after the last reader has gone', async () => {
    const { seen, stop } = follow('key');
    stop();
    await pass(10 * pollMs);
    expect(seen).toEqual(['end']);
    expect(polls).toHaveLength(1);
    brings = [unavailable()];
    const other = follow('key');
    other.stop();
    await pass(10 * pollMs);
    expect(polls).toHaveLength(2);
  });

  it('ends after its longest time, or that of the watch, and calls what waits for the end', async () => {
    const ends: string[] = [];
    const short = follow('key', { maxMs: 1500, onEnd: () => ends.push('short') });
    const long = follow('key', { maxMs: 10 * maxMs, onEnd: () => ends.push('long') });
    await pass(1499);
    expect(short.seen).toEqual([1]);
    await pass(2);
    expect(short.seen).toEqual([1, 'end']);
    await pass(maxMs - 1502);
    expect(long.seen).toEqual([1]);
    await pass(2);
    expect(long.seen).toEqual([1, 'end']);
    expect(ends).toEqual(['short', 'long']);
  });

  it('tries again after a failure, later each time, and as if nothing had been after a success', async () => {
    brings = [unavailable(), unavailable(), unavailable(2), 1, unavailable(), 1];
    const { seen } = follow('key');
    await pass(3 * pollMs + 100);
    expect(pollTimes()).toEqual([0, 10, 30, 2030, 3030, 3040]);
    expect(seen).toEqual([1]);
  });

  it.each([
    ['NOT_FOUND', new GatewayError('NOT_FOUND', 'no')],
    ['TAXPAYER_NOT_AUTHORIZED', new GatewayError('TAXPAYER_NOT_AUTHORIZED', 'no')],
    ['UPSTREAM_REJECTED', new GatewayError('UPSTREAM_REJECTED', 'no')],
    ['BAD_USER_INPUT', new GatewayError('BAD_USER_INPUT', 'no')],
    ['Error: ours', new Error('ours')],
  ])('ends with an error that will not pass: %s', async (code, error) => {
    brings = [1, error];
    const readers = [follow('key'), follow('key')];
    await pass(10 * pollMs);
    expect(readers.map(({ seen }) => seen)).toEqual([
      [1, code],
      [1, code],
    ]);
    expect(polls).toHaveLength(2);
    expect(watcher.polled).toBe(0);
  });

  it('shows what stands in while polls fail, to those who have nothing yet', async () => {
    brings = [1, unavailable()];
    const first = follow('key');
    await pass(pollMs + 1);
    standIn = { value: 4, readAt: 0 };
    const second = follow('key');
    await pass(20);
    expect(second.seen).toEqual([4]);
    expect(first.seen).toEqual([1]);
  });

  it('shows what stands in when the first poll fails', async () => {
    brings = [unavailable()];
    standIn = { value: 4, readAt: 0 };
    const { seen } = follow('key');
    await pass(100);
    expect(seen).toEqual([4]);
  });

  it('polls for its readers in turn; a pause that one of them is asked for holds up no other', async () => {
    brings = [1, 1, unavailable(30, 'two'), 2, unavailable(30), 3];
    for (const holder of ['one', 'two']) follow('key', { holder });
    await pass(33_020);
    expect(polls.map(({ at, call }) => [at, call.holder])).toEqual([
      [0, 'one'],
      [1000, 'one'],
      [2000, 'two'],
      [2010, 'one'],
      [3010, 'two'],
      [33_010, 'one'],
    ]);
  });

  it('waits for the pause that its only reader is asked for, and for one of somebody else', async () => {
    brings = [unavailable(30, 'one'), unavailable(5, 'nobody'), 1];
    const { seen } = follow('key', { holder: 'one' });
    await pass(35_001);
    expect(pollTimes()).toEqual([0, 30_000, 35_000]);
    expect(seen).toEqual([1]);
  });

  it('tells its readers anew after forgetting', async () => {
    const [meant, other] = [follow('one'), follow('two')];
    await pass(10);
    watcher.forget((key) => key === 'one');
    await pass(10);
    expect([meant.seen, other.seen]).toEqual([[1, 1], [1]]);
    expect(polls.at(-1)).toMatchObject({ key: 'one', known: undefined });
  });

  it('settles with the first final view, or with the last known when it is told to end', async () => {
    const present = { value: 0, readAt: 0 };
    const { signal } = new AbortController();
    brings = [1, 2, 100];
    const settled = watcher.settle('key', present, { signal });
    await pass(10 * pollMs);
    expect(await settled).toMatchObject({ value: 100 });

    brings = [1, 2];
    const stopped = new AbortController();
    const pending = watcher.settle('key', present, { signal: stopped.signal });
    await pass(pollMs + 1);
    stopped.abort();
    expect(await pending).toMatchObject({ value: 2 });
    expect(await watcher.settle('key', present, { signal: stopped.signal })).toBe(present);
    expect(counts.at(-1)).toBe(0);
  });

  it('ends all watches when it stops, and those that are begun afterwards', async () => {
    const readers = [follow('one'), follow('two')];
    await pass(1);
    watcher.stop();
    await pass(1);
    expect(readers.map(({ seen }) => seen)).toEqual([
      [1, 'end'],
      [1, 'end'],
    ]);
    const before = polls.length;
    const late = follow('one');
    await pass(10 * pollMs);
    expect(late.seen).toEqual(['end']);
    expect(polls).toHaveLength(before);
    expect(watcher.polled).toBe(0);
  });

  it('does not poll at once what is due later than a timer can wait', async () => {
    held = { value: 1, readAt: 0 };
    const far = newWatcher({ dueInMs: () => 1e12 }, 1e13);
    const stream = far.watch('key');
    await pass(2_147_483_646);
    expect(polls).toHaveLength(0);
    await pass(10);
    expect(polls).toHaveLength(1);
    await stream.return();
  });
});
