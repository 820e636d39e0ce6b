import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { openStore } from '../../src/stores/openStore.js';
import type { Store } from '../../src/stores/Store.js';
import { replacePlatform, restorePlatform } from '../support/platform.js';
import { readerOver, readId, readName } from '../support/reader.js';
import { startRedis } from '../support/redis.js';
import { until } from '../support/until.js';

const anything = () => true;

describe('A holder whose lease is over when it is done', () => {
  afterEach(restorePlatform);

  /** Processes over one store, whose clock can be moved, and a fetch of the first of them that ends when told. */
  function scene() {
    let clock = 1000;
    replacePlatform(() => ({ monotonicNow: () => clock }));
    const store = new MemoryStore();
    const [late, next, later] = [readerOver(store), readerOver(store), readerOver(store)];
    /** Begins to read; resolves once the lease is held, with what ends the fetch and gives the answer. */
    const begin = (cache: typeof late.cache, acceptable: (entry: { value: string }) => boolean = anything) =>
      new Promise<(text: string) => Promise<string>>((begun) => {
        const answer = Promise.resolve(
          cache.read(readId, {
            acceptable,
            fetch: () =>
              new Promise<string>((bring) => {
                begun(async (text) => {
                  bring(text);
                  return (await answer).value;
                });
              }),
          }),
        );
      });
    return {
      late: late.cache,
      sealed: late.sealed,
      next: next.cache,
      begin,
      endLease: () => {
        clock += 10_000;
      },
      stored: async () =>
        (await later.cache.read(readId, { acceptable: anything, fetch: async () => 'nothing' })).value,
    };
  }

  it('does not overwrite what the next holder wrote, and answers with that', async () => {
    const { late, next, begin, endLease, stored } = scene();
    const finish = await begin(late);
    endLease();
    await (await begin(next))('newer');
    expect(await finish('older')).toBe('newer');
    expect(late.peek(readId)?.value).toBe('newer');
    expect(await stored()).toBe('newer');
  });

  it('does not overwrite it either when its own readers cannot use it', async () => {
    const { late, next, begin, endLease, stored } = scene();
    const finish = await begin(late, ({ value }) => value !== 'newer');
    endLease();
    await (await begin(next))('newer');
    expect(await finish('older')).toBe('older');
    expect(await stored()).toBe('newer');
  });

  it('leaves the writing to the next holder while that one is at work', async () => {
    const { late, next, begin, endLease, stored } = scene();
    const finish = await begin(late);
    endLease();
    const finishNext = await begin(next);
    expect(await finish('older')).toBe('older');
    expect(await finishNext('newer')).toBe('newer');
    expect(await stored()).toBe('newer');
  });

  it('writes all the same when nobody came after it', async () => {
    const { late, begin, endLease, stored } = scene();
    const finish = await begin(late);
    endLease();
    expect(await finish('only')).toBe('only');
    expect(await stored()).toBe('only');
  });

  it('writes over what is older than its question: the store had it all along, and could not be read', async () => {
    const { late, sealed, begin, stored } = scene();
    const finish = await begin(late);
    await sealed.set(readName, { version: 'an old one', fetchedAt: Date.now() - 60_000, value: 'old' }, 60_000);
    await sealed.release(readName, (await sealed.leaseOwner(readName)) ?? '');
    expect(await finish('fetched')).toBe('fetched');
    expect(late.peek(readId)?.value).toBe('fetched');
    expect(await stored()).toBe('fetched');
  });

  it('writes nothing once its lease was deleted and something that is no entry was left in place of one', async () => {
    const { late, sealed, begin } = scene();
    const finish = await begin(late);
    await sealed.set(readName, 'no entry', 60_000);
    await sealed.release(readName, (await sealed.leaseOwner(readName)) ?? '');
    await sleep(1200); // a renewal was due
    expect(await sealed.leaseOwner(readName)).toBeUndefined();
    expect(await finish('late')).toBe('late');
    expect(await sealed.look(readName)).toBe('no entry');
  });
});

describe('A process that is stopped while it holds a lease', () => {
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  async function redis() {
    const server = await startRedis();
    ends.push(() => server.stop());
    return { url: server.url, flush: () => server.command('FLUSHALL') };
  }

  async function lmdb() {
    const directory = await mkdtemp(join(tmpdir(), 'late-writers-'));
    ends.push(() => rm(directory, { recursive: true }));
    return { url: `lmdb:${directory}` };
  }

  /** A reader in a process of its own, which holds the lease. */
  async function startReader(url: string): Promise<ChildProcess> {
    const args = ['--import', 'tsx', join('test', 'support', 'readerProcess.ts'), url];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    ends.push(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    });
    expect(await once(child, 'message')).toMatchObject({ 0: 'fetching' });
    return child;
  }

  async function openReader(url: string) {
    const store: Store = await openStore(url);
    ends.push(() => store.close());
    return readerOver(store);
  }

  it.each([
    ['Redis', redis],
    ['LMDB', lmdb],
  ])(
    'does not overwrite in %s what was written meanwhile',
    async (_, start) => {
      const { url } = await start();
      const child = await startReader(url);
      child.kill('SIGSTOP');
      const { cache, sealed } = await openReader(url);
      await until(async () => (await sealed.leaseOwner(readName)) === undefined);
      await cache.read(readId, { acceptable: anything, fetch: async () => 'newer' });
      child.send('older');
      child.kill('SIGCONT');
      expect((await once(child, 'message'))[0]).toEqual({ answered: 'newer', held: 'newer' });
      expect(await sealed.look(readName)).toMatchObject({ value: 'newer' });
    },
    60_000,
  );

  it('writes to a Redis that was emptied meanwhile', async () => {
    const { url, flush } = await redis();
    const child = await startReader(url);
    await flush();
    child.send('fetched');
    expect((await once(child, 'message'))[0]).toEqual({ answered: 'fetched', held: 'fetched' });
    const { sealed } = await openReader(url);
    expect(await sealed.look(readName)).toMatchObject({ value: 'fetched' });
  }, 60_000);
});
