import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Sealer } from '../../../src/cache/sealing.js';
import { Secret } from '../../../src/config/secret.js';
import { LmdbStore } from '../../../src/stores/LmdbStore.js';
import { startStoreProcess } from '../../support/storeProcess.js';
import { storeContract } from '../../support/stores/storeContract.js';

const newDirectory = () => mkdtemp(join(tmpdir(), 'lmdb-store-'));

storeContract('LmdbStore', async () => {
  const directory = await newDirectory();
  return {
    open: async () => LmdbStore.open(directory),
    pass: (ms) => sleep(ms),
    url: `lmdb:${directory}`,
    stop: () => rm(directory, { recursive: true }),
  };
});

describe('LmdbStore', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await newDirectory();
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('creates a directory and files that only their owner can read', async () => {
    const path = join(directory, 'a', 'cache');
    const store = LmdbStore.open(path);
    await store.set('key', Buffer.from('x'), 1000);
    const modes = ['', 'data.mdb', 'lock.mdb'].map((name) => statSync(join(path, name)).mode & 0o777);
    expect(modes).toEqual([0o700, 0o600, 0o600]);
    await store.close();
  });

  it('closes its own directory to others, but not one that holds other things', async () => {
    const [own, shared] = [join(directory, 'own'), join(directory, 'shared')];
    for (const path of [own, shared]) mkdirSync(path, { mode: 0o755 });
    writeFileSync(join(shared, 'other'), '');
    await LmdbStore.open(own).close();
    await LmdbStore.open(shared).close();
    expect(statSync(own).mode & 0o777).toBe(0o700);
    expect(statSync(shared).mode & 0o777).toBe(0o755);
    expect(statSync(join(shared, 'data.mdb')).mode & 0o777).toBe(0o600);
  });

  it('keeps entries over a restart, and their expiry with them', async () => {
    const path = join(directory, 'restart');
    let now = 1000;
    const before = LmdbStore.open(path, { now: () => now });
    await before.set('short', Buffer.from('x'), 10);
    await before.set('long', Buffer.from('y'), 100);
    await before.close();
    now += 50;
    const after = LmdbStore.open(path, { now: () => now });
    expect(await after.get('short')).toBeUndefined();
    expect(await after.get('long')).toEqual(Buffer.from('y'));
    await after.close();
  });

  it('loses nothing that was stored when a process is killed in the middle of writing', async () => {
    const path = join(directory, 'killed');
    for (let round = 0; round < 3; round++) {
      const writer = await startStoreProcess(`lmdb:${path}`);
      await writer.order({ do: 'set', key: 'earlier', value: `round ${round}`, ttlMs: 60_000 });
      writer.send({ do: 'writeForEver', key: 'big' });
      let stored = 0;
      for (let n = 0; n < 10; n++) stored = (await writer.next()).written ?? 0;
      await writer.kill();
      const store = LmdbStore.open(path);
      expect((await store.get('earlier'))?.toString()).toBe(`round ${round}`);
      const big = await store.get('big');
      expect(big).toHaveLength(65_536);
      expect(new Set(big).size).toBe(1); // whole: one of the writes, not a mixture
      expect(Number(String.fromCharCode(big?.[0] ?? 0))).toBeGreaterThanOrEqual(stored - 9);
      expect(await store.claim('after', Buffer.from('x'), 1)).toBe(true); // the dead writer's lock is gone
      await sleep(2);
      await store.close();
    }
  }, 60_000);

  it('is not held up by a process too busy to run its callbacks', async () => {
    const path = join(directory, 'busy');
    const store = LmdbStore.open(path);
    const busy = await startStoreProcess(`lmdb:${path}`);
    for (let n = 0; n < 4; n++) {
      let blocking = true;
      const blocked = busy.order({ do: 'writeThenBlock', key: `busy-${n}`, ms: 600 }).finally(() => {
        blocking = false;
      });
      let claims = 0;
      for (; blocking; claims++) {
        expect(await store.claim(`lease-${n}-${claims}`, Buffer.from('x'), 1000)).toBe(true);
      }
      expect(await blocked).toBe(true);
      expect(claims).toBeGreaterThan(2); // one may be under way when it begins, and one when it ends
    }
    await busy.kill();
    await store.close();
  });

  it('grows as needed, while another process has it open', async () => {
    const path = join(directory, 'grown');
    const reader = await startStoreProcess(`lmdb:${path}`);
    const store = LmdbStore.open(path);
    for (let n = 0; n < 40; n++) await store.set(`key-${n}`, Buffer.alloc(1 << 20, n), 60_000);
    expect(String(await reader.order({ do: 'get', key: 'key-39' }))).toHaveLength(1 << 20);
    await reader.order({ do: 'set', key: 'back', value: 'x', ttlMs: 60_000 });
    expect(await store.get('back')).toEqual(Buffer.from('x'));
    await reader.close();
    await store.close();
  }, 60_000);

  it('purges expired entries in bounded steps, so that the file stops growing', async () => {
    const path = join(directory, 'purged');
    let now = 1000;
    const store = LmdbStore.open(path, { now: () => now, careEveryMs: 0, purgeStep: 50 });
    const fill = async (round: number) => {
      await Promise.all(
        Array.from({ length: 200 }, (_, n) => store.set(`${round}-${n}`, Buffer.alloc(4000), n % 2 ? 10 : 1e9)),
      );
      now += 20;
    };
    await fill(0);
    const removed = [];
    for (let step = 0; step < 5; step++) removed.push(await store.purge());
    expect(Math.max(...removed)).toBeLessThanOrEqual(50);
    expect(removed.reduce((a, b) => a + b)).toBe(100);
    expect(await store.get('0-2')).toHaveLength(4000);
    await store.close();
  });

  it('purges by itself in the background', async () => {
    const store = LmdbStore.open(join(directory, 'background'), { careEveryMs: 10 });
    await store.set('gone', Buffer.from('x'), 1);
    let sizes = 1;
    const { open } = await import('lmdb');
    const raw = open<Buffer, string>({ path: join(directory, 'background'), encoding: 'binary', useVersions: true });
    for (let n = 0; n < 200 && sizes > 0; n++) {
      await sleep(10);
      raw.resetReadTxn();
      sizes = raw.getKeysCount();
    }
    expect(sizes).toBe(0);
    await raw.close();
    await store.close();
  });

  it('takes bytes it did not write for a miss, and lets them be overwritten', async () => {
    const path = join(directory, 'foreign');
    const store = LmdbStore.open(path);
    const { open } = await import('lmdb');
    const raw = open<Buffer, string>({ path, encoding: 'binary', useVersions: true });
    await raw.put('short', Buffer.from('x'), 1);
    await raw.put('other', Buffer.from('a text that is long enough'), 1);
    await raw.close();
    expect([await store.get('short'), await store.get('other')]).toEqual([undefined, undefined]);
    expect(await store.claim('short', Buffer.from('lease'), 1000)).toBe(true);
    expect(await store.increment('other', 1, 1000)).toBe(1);
    await store.close();
  });

  it('lives on behind a FallbackStore when the disk is full, with what was stored before and since', async () => {
    const full = await startStoreProcess(`lmdb:${join(directory, 'full')}`, 1024);
    let degraded = false;
    for (let n = 0; n < 200 && !degraded; n++) {
      await full.order({ do: 'set', key: `key-${n}`, value: `${n}`.padEnd(8000, '.'), ttlMs: 60_000 });
      degraded = Boolean(await full.order({ do: 'isDegraded' }));
    }
    expect(degraded).toBe(true);
    await full.order({ do: 'set', key: 'since', value: 'x', ttlMs: 60_000 });
    expect(await full.order({ do: 'get', key: 'key-0' })).toHaveLength(8000);
    expect(await full.order({ do: 'get', key: 'since' })).toBe('x');
    expect(await full.order({ do: 'acquire', key: 'token', owner: 'me' })).toBe(true);
    expect(await full.close()).toBe(0);
  });

  it('holds no readable trace of what was sealed', async () => {
    const path = join(directory, 'sealed');
    const sealer = new Sealer({ from: 'client-secret', secret: new Secret('planted-client-secret') });
    const store = LmdbStore.open(path);
    for (let n = 0; n < 50; n++) {
      const key = sealer.current.name(['token', `planted-taxpayer-${n}`]);
      await store.set(key, sealer.current.seal(key, Buffer.from(`{"accessToken":"planted-token-${n}"}`)), 60_000);
    }
    await store.close();
    for (const name of await readdir(path)) {
      const content = (await readFile(join(path, name))).toString('latin1');
      expect(content).not.toContain('planted');
      expect(content).not.toContain(Buffer.from('planted-t').toString('base64').slice(0, 10));
    }
  });

  it('says that CACHE_URL is wrong and why, for a file in the way', () => {
    writeFileSync(join(directory, 'file'), '');
    expect(() => LmdbStore.open(join(directory, 'file', 'cache'))).toThrow(/^CACHE_URL: .+: .+/);
  });
});
