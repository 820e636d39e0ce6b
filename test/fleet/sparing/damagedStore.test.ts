import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LmdbStore } from '../../../src/stores/LmdbStore.js';
import { isDamaged } from '../../../src/stores/lmdbFile.js';
import { environmentFor, type GatewayProcess, launchGateway, postQuery, spawnGateway } from '../../support/gateway.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';

let sandbox: Sandbox;
let root: string;
let sound: string;
beforeAll(async () => {
  sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' });
  root = mkdtempSync(join(tmpdir(), 'damaged-store-'));
  sound = join(root, 'sound');
  const store = LmdbStore.open(sound);
  for (let round = 0; round < 4; round++) {
    const sizes = Array.from({ length: 200 }, (_, n) => (n % 50 === 0 ? 30_000 : 700));
    await Promise.all(sizes.map((size, n) => store.set(`key-${round}-${n}`, randomBytes(size), 3_600_000)));
    for (let n = 0; n < 200; n += 3) {
      const value = await store.get(`key-${round}-${n}`);
      if (value) await store.compareAndDelete(`key-${round}-${n}`, value);
    }
  }
  await store.close();
});
afterAll(async () => {
  await sandbox.stop();
  rmSync(root, { recursive: true });
});

const running: GatewayProcess[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.kill()));
});

let copies = 0;
/** A copy of the sound database, with its file as `damage` leaves it. */
function damaged(damage: (file: Buffer) => Buffer): string {
  const directory = join(root, `copy-${copies++}`);
  cpSync(sound, directory, { recursive: true });
  writeFileSync(join(directory, 'data.mdb'), damage(readFileSync(join(sound, 'data.mdb'))));
  return directory;
}

async function start(directory: string, env: Readonly<Record<string, string>> = {}): Promise<GatewayProcess> {
  const gateway = await spawnGateway({ ...environmentFor(sandbox), ...env, CACHE_URL: `lmdb:${directory}` });
  running.push(gateway);
  return gateway;
}

const setAsideLines = (gateway: GatewayProcess) =>
  gateway
    .output()
    .split('\n')
    .filter((line) => line.includes('was damaged'));
const setAsideFiles = (directory: string) => readdirSync(directory).filter((name) => name.startsWith('data.mdb.'));
const read = (gateway: GatewayProcess, id: string) =>
  postQuery(gateway.origin, 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id });
const metric = async ({ origin }: GatewayProcess) =>
  /^gateway_store_set_aside_total (\d+)$/m.exec(await (await fetch(`${origin}/metrics`)).text())?.[1];

const zeroed = (file: Buffer, from: number, to: number) => file.fill(0, from, to);
const garbled = (file: Buffer, from: number, to: number) => {
  randomBytes(to - from).copy(file, from);
  return file;
};

describe('a damaged LMDB database', () => {
  it.each<[string, (file: Buffer) => Buffer]>([
    ['cut off in the first page', (file) => file.subarray(0, 100)],
    ['cut off after the first page', (file) => file.subarray(0, 4096)],
    ['cut off after its header', (file) => file.subarray(0, 8192)],
    ['cut in half', (file) => file.subarray(0, file.length / 2)],
    // Not without its last byte: the last page may be a free one, which nobody misses.
    ['without its last quarter and one byte', (file) => file.subarray(0, file.length * 0.75 - 1)],
    ['zeroed', (file) => zeroed(file, 0, file.length)],
    ['with a zeroed first page', (file) => zeroed(file, 0, 4096)],
    ['with a zeroed header', (file) => zeroed(file, 0, 8192)],
    ['zeroed behind its header', (file) => zeroed(file, 8192, file.length)],
    ['overwritten with garbage', (file) => garbled(file, 0, file.length)],
    ['with garbage for a header', (file) => garbled(file, 0, 8192)],
    ['with garbage behind its header', (file) => garbled(file, 8192, file.length)],
    ['with garbage in its second half', (file) => garbled(file, file.length / 2, file.length)],
    ['of another program', (file) => Buffer.alloc(file.length, 'SQLite format 3')],
  ])('%s is renamed, told, and the gateway serves and remembers', async (_, damage) => {
    const directory = damaged(damage);
    const found = readFileSync(join(directory, 'data.mdb'));
    const gateway = await start(directory);
    const { id } = sandbox.control.addTaxpayer();
    expect((await read(gateway, id)).errors).toBeUndefined();
    expect(setAsideLines(gateway)).toHaveLength(1);
    expect(await metric(gateway)).toBe('1');
    const [file] = setAsideFiles(directory);
    expect(file).toMatch(/^data\.mdb\.damaged-\d{4}-\d\d-\d\dT/);
    expect(setAsideLines(gateway)[0]).toContain(file);
    expect(readFileSync(join(directory, String(file))).equals(found)).toBe(true);
    await gateway.kill();

    const next = await start(directory);
    expect((await read(next, id)).errors).toBeUndefined();
    expect(sandbox.control.tokenCalls(id)).toBe(1);
    expect(setAsideLines(next)).toEqual([]);
    expect(await metric(next)).toBe('0');
    expect(setAsideFiles(directory)).toHaveLength(1);
  });

  it('is renamed by one of many processes that start at once; the others share the new one', async () => {
    const directory = damaged((file) => file.subarray(0, file.length / 2));
    const gateways = await Promise.all([start(directory), start(directory), start(directory)]);
    expect(gateways.flatMap(setAsideLines)).toHaveLength(1);
    expect(setAsideFiles(directory)).toHaveLength(1);
    const { id } = sandbox.control.addTaxpayer();
    for (const gateway of gateways) expect((await read(gateway, id)).errors).toBeUndefined();
    expect(sandbox.control.tokenCalls(id)).toBe(1);
  }, 60_000);

  it('is not seen in one that is sound or empty, nor in one that is being written', async () => {
    const empty = damaged(() => Buffer.alloc(0));
    const gateway = await start(empty);
    expect(setAsideLines(gateway)).toEqual([]);
    const file = join(empty, 'data.mdb');
    const store = LmdbStore.open(empty);
    let writing = true;
    const writes = (async () => {
      for (let n = 0; n < 150; n++) {
        const sizes = Array.from({ length: 20 }, (_, m) => (m === 0 ? 20_000 : 500));
        await Promise.all(sizes.map((size, m) => store.set(`key-${(n * 7 + m) % 300}`, randomBytes(size), 60_000)));
      }
      writing = false;
    })();
    for (; writing; await new Promise(setImmediate)) expect(isDamaged(file)).toBe(false);
    await writes;
    await store.close();
    expect(isDamaged(join(sound, 'data.mdb'))).toBe(false);
  }, 60_000);
});

describe('a directory for LMDB that cannot be made or written to', () => {
  it.each([
    ['under /proc', '/proc/nothing/here'],
    ['/proc itself', '/proc'],
    ['under a file', `${import.meta.filename}/cache`],
  ])('is one line that names CACHE_URL: %s', async (_, directory) => {
    const startedAt = performance.now();
    const { output, exited } = launchGateway({ ...environmentFor(sandbox), CACHE_URL: `lmdb:${directory}` });
    expect(await exited).toBe(1);
    expect(output().trimEnd().split('\n')).toEqual([expect.stringMatching(/^CACHE_URL: .*cannot be opened: E[A-Z]+/)]);
    expect(performance.now() - startedAt).toBeLessThan(10_000); // most of it loading the program on a busy machine
  });
});
