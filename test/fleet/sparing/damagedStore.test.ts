import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LmdbStore } from '../../../src/stores/LmdbStore.js';
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

describe('a damaged LMDB database', () => {
  it.each<[string, (file: Buffer) => Buffer]>([
    ['cut in half', (file) => file.subarray(0, file.length / 2)],
    ['with a zeroed header', (file) => file.fill(0, 0, 8192)],
    ['with garbage behind its header', (file) => Buffer.concat([file.subarray(0, 8192), randomBytes(file.length)])],
    ['of another program', (file) => Buffer.alloc(file.length, 'SQLite format 3')],
  ])('%s is renamed, told, and the gateway serves and remembers', async (_, damage) => {
    const directory = damaged(damage);
    const found = readFileSync(join(directory, 'data.mdb'));
    const gateways = await Promise.all([start(directory), start(directory)]); // one renames it, the other shares the new one
    const [line, ...more] = gateways.flatMap(setAsideLines);
    expect(more).toEqual([]);
    const [file] = setAsideFiles(directory);
    expect(file).toMatch(/^data\.mdb\.damaged-\d{4}-\d\d-\d\dT/);
    expect(line).toContain(file);
    expect(readFileSync(join(directory, String(file))).equals(found)).toBe(true);
    const { id } = sandbox.control.addTaxpayer();
    for (const gateway of gateways) expect((await read(gateway, id)).errors).toBeUndefined();
    expect(sandbox.control.tokenCalls(id)).toBe(1);
    await Promise.all(gateways.map((gateway) => gateway.kill()));

    const next = await start(directory);
    expect((await read(next, id)).errors).toBeUndefined();
    expect(sandbox.control.tokenCalls(id)).toBe(1);
    expect(setAsideLines(next)).toEqual([]);
    expect(setAsideFiles(directory)).toHaveLength(1);
  });

  it('is not seen in one that is sound or empty', async () => {
    for (const directory of [damaged(() => Buffer.alloc(0)), damaged((file) => file)]) {
      expect(setAsideLines(await start(directory))).toEqual([]);
      expect(setAsideFiles(directory)).toEqual([]);
    }
  });
});

describe('a directory for LMDB that cannot be made or written to', () => {
  it.each([
    ['under /proc', '/proc/nothing/here'],
    ['under a file', `${import.meta.filename}/cache`],
  ])('is one line that names CACHE_URL: %s', async (_, directory) => {
    const { output, exited } = launchGateway({ ...environmentFor(sandbox), CACHE_URL: `lmdb:${directory}` });
    expect(await exited).toBe(1);
    expect(output().trimEnd().split('\n')).toEqual([expect.stringMatching(/^CACHE_URL: .*cannot be opened: E[A-Z]+/)]);
  });
});
