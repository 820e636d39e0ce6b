import { EventEmitter, once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { LocalStore } from '../../src/stores/LocalStore.js';
import { scratch } from '../support/scratch.js';
import { until } from '../support/until.js';

afterEach(() => void jest.restoreAllMocks());

const value = Buffer.from('x');
const put = (store: LocalStore, key = 'key') => store.put(key, value, 60_000, 'always');
const claim = (store: LocalStore, key = 'claim') => store.put(key, value, 60_000, 'if-absent');

/** A store in a directory, the codes it reports, and the methods of every open file. */
async function openStore(directory = scratch()) {
  const told: string[] = [];
  const store = await LocalStore.open(directory, {
    waitMs: 0,
    onTrouble: (error) => void told.push(`${error?.code}`),
  });
  const file = await open(import.meta.filename);
  await file.close();
  const methods: FileHandle = Object.getPrototypeOf(file);
  return { directory, store, told, methods };
}

/** Lets one process work on a store in a directory, until it ends. */
async function inStore<T>(directory: string, work: (store: LocalStore) => Promise<T>): Promise<T> {
  const { store, told } = await openStore(directory);
  const result = await work(store);
  await store.close();
  expect(told).toEqual([]);
  return result;
}

async function expectKept(directory: string, key = 'key') {
  expect(await inStore(directory, (store) => store.get(key))).toMatchObject({ value });
}

it('What is being written while a store is closed is kept', async () => {
  const directory = scratch();
  await inStore(directory, async (store) => {
    for (let n = 0; n < 99; n += 1) {
      put(store, `key ${n}`).catch(() => {});
      if (n === 0) await Promise.resolve(); // the write of this one begins
    }
  });
  await expectKept(directory, 'key 98');
});

it('A file that a killed process had begun to write does not stop the next one; what was deleted stays deleted', async () => {
  const directory = scratch();
  writeFileSync(join(directory, 'journal.new'), 'half of it');
  await inStore(directory, async (store) => {
    for (const key of ['key', 'claim']) await put(store, key);
    await store.deleteIf('claim', value);
  });
  const [kept, deleted] = await inStore(directory, (store) => Promise.all([store.get('key'), store.get('claim')]));
  expect(deleted).toBeUndefined();
  expect(kept).toMatchObject({ value });
  expect(kept?.value.buffer.byteLength).toBe(value.length); // a buffer of Node's pool would keep all of the pool
});

it('A clock that was set back prolongs nothing', async () => {
  const directory = scratch();
  jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000);
  await inStore(directory, put);
  jest.restoreAllMocks();
  const kept = await inStore(directory, (store) => store.get('key'));
  expect(kept?.leftMs).toBeLessThanOrEqual(60_000);
});

it.each(['can be cut off', 'cannot'])(
  'What a full disk takes a part of is written once there is room, if that part %s',
  async (end) => {
    const { directory, store, methods } = await openStore();
    const { appendFile } = methods;
    jest.spyOn(methods, 'appendFile').mockImplementationOnce(async function (this: FileHandle, record) {
      await appendFile.call(this, (record as Buffer).subarray(0, 20));
      throw new Error('planted');
    });
    if (end === 'cannot') jest.spyOn(methods, 'truncate').mockRejectedValueOnce('planted');
    await put(store);
    await store.close();
    await expectKept(directory);
  },
);

it('A claim that cannot be written is refused, and free again; of those that follow, nothing is kept to be written', async () => {
  const { directory, store, methods } = await openStore();
  jest.spyOn(methods, 'appendFile').mockRejectedValueOnce({ code: 'ENOSPC' });
  for (const key of ['claim', 'later']) {
    await expect(claim(store, key)).rejects.toMatchObject({ code: 'ENOSPC' });
  }
  expect(await store.get('claim')).toBeUndefined();
  await store.close();
  expect(readFileSync(join(directory, 'journal'), 'utf8')).not.toContain('later');
  expect(await inStore(directory, claim)).toBe(true);
});

it('A disk that hangs is not waited for; what changed meanwhile is written once it goes on', async () => {
  const { directory, store, methods } = await openStore();
  const { appendFile } = methods;
  const disk = new EventEmitter();
  jest.spyOn(methods, 'appendFile').mockImplementationOnce(async function (this: FileHandle, record) {
    await once(disk, 'goes on');
    await appendFile.call(this, record);
  });
  await expect(claim(store)).rejects.toMatchObject({ trouble: 'timed-out' });
  await put(store);
  disk.emit('goes on');
  const written = async (key: string) => (await LocalStore.read(directory)).get(key);
  await until(async () => (await written('key')) !== undefined);
  expect(await written('claim')).toBeUndefined();
  await store.close();
});

it('A claim that a process writes after it stood still, into the file before that of its successor, does not count', async () => {
  const { directory, store } = await openStore();
  rmSync(join(directory, 'lock'));
  writeFileSync(join(directory, 'lock'), 'of its successor');
  await expect(claim(store)).rejects.toMatchObject({ code: 'ELOCKED' });
  await store.close();
});

it('A process that stood still while it wrote the file anew leaves that of its successor, also once that has ended', async () => {
  const { directory, store, methods } = await openStore();
  await put(store);
  const names = ['lock', 'journal', 'journal.new'];
  jest.spyOn(methods, 'datasync').mockImplementationOnce(async () => {
    for (const name of names) {
      rmSync(join(directory, name));
      writeFileSync(join(directory, name), 'of its successor');
    }
  });
  for (let n = 0; n < 2; n += 1) await expect(store.forget('record')).rejects.toMatchObject({ code: 'ELOCKED' });
  rmSync(join(directory, 'lock')); // its successor has ended
  await sleep(1200);
  await expect(claim(store)).rejects.toMatchObject({ code: 'ELOCKED' });
  writeFileSync(join(directory, 'lock'), 'of its successor', { flag: 'wx' });
  await store.close();
  for (const name of names) expect(readFileSync(join(directory, name), 'utf8')).toBe('of its successor');
});

it('A store that is closed while it renews its lock leaves none behind, and tells nothing', async () => {
  const { directory, store, told, methods } = await openStore();
  await new Promise<void>((resolve) => {
    jest.spyOn(methods, 'utimes').mockImplementationOnce(async () => {
      await store.close();
      setTimeout(resolve, 50);
      throw new Error('the file is closed');
    });
  });
  expect(told).toEqual([]);
  expect(readdirSync(directory)).toEqual(['journal']);
});

it('The previous file may report a fault when it is closed, and takes nothing once a new one may have its name', async () => {
  const { directory, store, methods } = await openStore();
  const { appendFile } = methods;
  jest.spyOn(methods, 'appendFile').mockImplementationOnce(async function (this: FileHandle, record) {
    await appendFile.call(this, record);
    const { close } = this;
    this.close = async () => Promise.reject(await close());
  });
  await put(store);
  jest.spyOn(methods, 'datasync').mockImplementationOnce(async () => {
    for (const name of ['journal', 'journal.new']) rmSync(join(directory, name));
  });
  await expect(store.forget('record')).rejects.toMatchObject({ code: 'ENOENT' });
  await store.close();
  await expectKept(directory);
});
