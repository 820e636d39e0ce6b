import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openStore } from '../../../src/stores/openStore.js';
import { freePort } from '../../support/freePort.js';

describe('openStore', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'open-store-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  it.each([
    ['memory', () => 'memory:', false],
    ['lmdb', () => `lmdb:${directory}/cache`, false],
  ])('opens a %s store', async (kind, url, degraded) => {
    const store = await openStore(url());
    expect(store).toMatchObject({ kind, degraded });
    await store.set('key', Buffer.from('x'), 1000);
    expect(await store.get('key')).toEqual(Buffer.from('x'));
    await store.close();
  });

  it('does not give up LMDB for a disk that is busy for a moment: each process would ask the service again', async () => {
    const path = join(directory, 'busy');
    const troubles: string[] = [];
    const store = await openStore(`lmdb:${path}`, { onDegraded: (trouble) => void troubles.push(trouble) });
    const script = `
      import { writeSync } from 'node:fs';
      import { open } from 'lmdb';
      const db = open({ path: process.argv[1], noSubdir: false, encoding: 'binary', useVersions: true });
      db.transactionSync(() => {
        writeSync(1, 'nobody else can write');
        for (const end = performance.now() + 600; performance.now() < end; );
      });
      await db.close();`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script, path]);
    const ended = once(holder, 'exit');
    await once(holder.stdout, 'data');
    const startedAt = performance.now();
    await Promise.all(['a', 'b', 'c'].map((key) => store.set(key, Buffer.from('x'), 10_000)));
    expect(performance.now() - startedAt).toBeGreaterThan(300); // so it did have to wait
    expect(troubles).toEqual([]);
    expect(store.degraded).toBe(false);
    expect(await ended).toEqual([0, null]);
    await store.close();
  });

  it.each(['redis', 'redis+cluster', 'redis+sentinel'])('starts degraded when %s is down', async (form) => {
    const port = await freePort();
    const troubles: string[] = [];
    const url = `${form}://:planted@127.0.0.1:${port}${form === 'redis+sentinel' ? '/main' : ''}`;
    const store = await openStore(url, { onDegraded: (trouble) => void troubles.push(trouble) });
    expect(store).toMatchObject({ kind: 'redis', degraded: true });
    expect(troubles).toEqual(['unreachable']);
    expect(await store.acquire('token', Buffer.from('x'), 1000)).toEqual({ state: 'taken' });
    await store.close();
  });

  it.each(['', 'http://:planted@a', 'lmdb:', 'redis://:planted@a:1,b:2', 'mongodb://planted'])(
    'refuses %j without repeating it',
    async (url) => {
      await expect(openStore(url)).rejects.toThrow(/^CACHE_URL (?!.*planted)/);
    },
  );

  it('says why the directory cannot be opened', async () => {
    await writeFile(join(directory, 'file'), '');
    await expect(openStore(`lmdb:${directory}/file/cache`)).rejects.toThrow(/^CACHE_URL: .*ENOTDIR/);
  });

  it('loads only the driver it needs', async () => {
    const script = `
      import { createRequire } from 'node:module';
      const { openStore } = await import('./src/stores/openStore.ts');
      const store = await openStore(process.argv[1]);
      await store.close();
      const loaded = Object.keys(createRequire(import.meta.url).cache);
      const native = process.report.getReport().sharedObjects;
      console.log(JSON.stringify({
        ioredis: loaded.some((file) => file.includes('node_modules/ioredis/')),
        lmdb: native.some((file) => file.includes('@lmdb')),
      }));`;
    const run = async (url: string) => {
      const args = ['--import', 'tsx', '--input-type=module', '-e', script, url];
      return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout);
    };
    expect(await run('memory:')).toEqual({ ioredis: false, lmdb: false });
    expect(await run(`lmdb:${directory}/only`)).toEqual({ ioredis: false, lmdb: true });
    expect(await run(`redis://127.0.0.1:${await freePort()}`)).toEqual({ ioredis: true, lmdb: false });
  });
});
