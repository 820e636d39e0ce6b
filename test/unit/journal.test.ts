import { EventEmitter, once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { LocalStore } from '../../src/stores/LocalStore.js';
import { scratch } from '../support/scratch.js';

afterEach(() => void jest.restoreAllMocks());

const value = Buffer.from('x');

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

it('What is being written while a store is closed is kept', async () => {
  const directory = scratch();
  await inStore(directory, async (store) => {
    for (let n = 0; n < 99; n += 1) {
      store.put(`key ${n}`, value, 60_000, 'always').catch(() => {});
      if (n === 0) await Promise.resolve(); // the write of this one begins
    }
  });
  expect(await inStore(directory, (store) => store.get('key 98'))).toMatchObject({ value });
});

it('A file that a killed process had begun to write does not stop the next one; what was deleted stays deleted', async () => {
  const directory = scratch();
  writeFileSync(join(directory, 'journal.new'), 'half of it');
  await inStore(directory, async (store) => {
    for (const key of ['key', 'claim']) await store.put(key, value, 60_000, 'always');
    await store.deleteIf('claim', value);
  });
  const [kept, deleted] = await inStore(directory, async (store) => [await store.get('key'), await store.get('claim')]);
  expect(deleted).toBeUndefined();
  expect(kept).toMatchObject({ value });
  expect(kept?.value.buffer.byteLength).toBe(value.length); // a buffer of Node's pool would keep all of the pool
});

it('A clock that was set back prolongs nothing', async () => {
  const directory = scratch();
  const inAnHour = Date.now() + 3_600_000;
  jest.spyOn(Date, 'now').mockReturnValue(inAnHour);
  await inStore(directory, (store) => store.put('key', value, 60_000, 'always'));
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
    if (end === 'cannot') jest.spyOn(methods, 'truncate').mockRejectedValueOnce(new Error('planted'));
    await store.put('key', value, 60_000, 'always');
    await store.close();
    expect(await inStore(directory, (next) => next.get('key'))).toMatchObject({ value });
  },
);

it('A claim that cannot be written is refused, and free again; of those that follow, nothing is kept to be written', async () => {
  const { directory, store, methods } = await openStore();
  const full = Object.assign(new Error('planted'), { code: 'ENOSPC' });
  jest.spyOn(methods, 'appendFile').mockRejectedValueOnce(full);
  for (const key of ['claim', 'later']) {
    await expect(store.put(key, value, 60_000, 'if-absent')).rejects.toMatchObject({ code: 'ENOSPC' });
  }
  expect(await store.get('claim')).toBeUndefined();
  await store.close();
  expect(readFileSync(join(directory, 'journal'), 'utf8')).not.toContain('later');
  expect(await inStore(directory, (next) => next.put('claim', value, 60_000, 'if-absent'))).toBe(true);
});

it('A disk that hangs is not waited for; what changed meanwhile is written once it goes on', async () => {
  const { directory, store, methods } = await openStore();
  const { appendFile } = methods;
  const disk = new EventEmitter();
  jest.spyOn(methods, 'appendFile').mockImplementationOnce(async function (this: FileHandle, record) {
    await once(disk, 'goes on');
    await appendFile.call(this, record);
  });
  await expect(store.put('claim', value, 60_000, 'if-absent')).rejects.toMatchObject({ trouble: 'timed-out' });
  await store.put('key', value, 60_000, 'always');
  disk.emit('goes on');
  const written = async (key: string) => (await LocalStore.read(directory)).get(key);
  while (!(await written('key'))) await sleep(20);
  expect(await written('claim')).toBeUndefined();
  await store.close();
});

it('A claim that a process writes after it stood still, into the file before that of its successor, does not count', async () => {
  const { directory, store } = await openStore();
  rmSync(join(directory, 'lock'));
  writeFileSync(join(directory, 'lock'), 'of its successor');
  await expect(store.put('claim', value, 60_000, 'if-absent')).rejects.toMatchObject({ code: 'ELOCKED' });
  await store.close();
});

it('A process that stood still while it wrote the file anew leaves that of its successor, also once that has ended', async () => {
  const { directory, store, methods } = await openStore();
  await store.put('key', value, 60_000, 'always');
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
  await expect(store.put('claim', value, 60_000, 'if-absent')).rejects.toMatchObject({ code: 'ELOCKED' });
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

it('A file that reports a fault when it is closed, as on a network, is replaced all the same', async () => {
  const { store, methods } = await openStore();
  const { appendFile } = methods;
  jest.spyOn(methods, 'appendFile').mockImplementationOnce(async function (this: FileHandle, record) {
    await appendFile.call(this, record);
    const { close } = this;
    this.close = () => close().then(() => Promise.reject(new Error('planted')));
  });
  await store.put('key', value, 60_000, 'always');
  await store.forget('record');
  await store.close();
});

it('Nothing more goes into the previous file after a new one that may have taken its place', async () => {
  const { directory, store, methods } = await openStore();
  await store.put('other', value, 60_000, 'always');
  const path = join(directory, 'journal');
  jest.spyOn(methods, 'datasync').mockImplementationOnce(async () => {
    rmSync(path);
    mkdirSync(path);
  });
  await expect(store.forget('record')).rejects.toMatchObject({ code: 'EISDIR' });
  rmdirSync(path);
  await store.put('key', value, 60_000, 'always');
  await store.close();
  expect(await inStore(directory, (next) => next.get('key'))).toMatchObject({ value });
});
