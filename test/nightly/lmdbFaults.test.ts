import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { environmentFor, type GatewayProcess, launchGateway, postQuery, spawnGateway } from '../support/gateway.js';
import { type Sandbox, startSandbox } from '../support/sandbox.js';
import { until } from '../support/until.js';
import { makeReadOnly, smallDisk } from './support/faultyDisk.js';

describe('Gateways whose LMDB directory has trouble while they use it', () => {
  let root: string;
  let sandbox: Sandbox;
  const running: GatewayProcess[] = [];
  const repairs: (() => void)[] = [];
  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'lmdb-faults-'));
    sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' });
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((each) => each.stop()));
    await sandbox.stop();
    for (const repair of repairs.splice(0)) repair();
    rmSync(root, { recursive: true });
  });

  const environment = (path: string) => ({ ...environmentFor(sandbox), CACHE_URL: `lmdb:${path}` });
  async function start(path: string, env: Readonly<Record<string, string>> = {}): Promise<GatewayProcess> {
    const gateway = await spawnGateway({ ...environment(path), ...env });
    running.push(gateway);
    return gateway;
  }
  const newTaxpayer = () => sandbox.control.addTaxpayer({ status: 'AUTHORIZED' }).id;
  const calls = (id: string) => sandbox.control.tokenCalls(id);
  const read = async ({ origin }: GatewayProcess, id: string) => {
    const { data, errors } = await postQuery<{ taxpayerToken: { taxpayerId: string } }>(
      origin,
      'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { taxpayerId } }',
      { id },
    );
    expect(errors).toBeUndefined();
    expect(data?.taxpayerToken.taxpayerId).toBe(id);
  };
  const linkCode = async ({ origin }: GatewayProcess, key: string) => {
    const create = 'mutation ($key: String!) { createClientLink(input: { idempotencyKey: $key }) { replayed } }';
    return (await postQuery(origin, create, { key })).errors?.[0]?.extensions.code;
  };
  const isDegraded = async ({ origin }: GatewayProcess) =>
    /^gateway_store_degraded 1$/m.test(await (await fetch(`${origin}/metrics`)).text());

  it('go on by themselves when the disk is full, create no link by key, and share again when there is room', async () => {
    const disk = smallDisk(join(root, 'disk'));
    repairs.push(disk.remove);
    const one = await start(disk.path, { TOKEN_BUDGET_PER_HOUR: '0' }); // or its reserve may be too small for all of them
    const known = newTaxpayer();
    await read(one, known);
    disk.fill([one.pid]);
    const taxpayers = Array.from({ length: 40 }, newTaxpayer);
    for (const id of [...taxpayers, ...taxpayers]) await read(one, id);
    // Pages that were freed before take some writes; those of further taxpayers find none.
    await until(async () => {
      await read(one, newTaxpayer());
      return isDegraded(one);
    });
    expect(one.output()).toMatch(/LMDB cannot write|LMDB accepts no writes/);
    expect(await linkCode(one, 'full')).toBe('UPSTREAM_UNAVAILABLE');
    expect(sandbox.control.counters().createClientLink).toBe(0);
    disk.free([one.pid]);
    await until(async () => !(await isDegraded(one)), 45_000);
    await until(async () => (await linkCode(one, 'full')) === undefined);
    const two = await start(disk.path);
    for (const id of [known, ...taxpayers]) await read(two, id);
    expect([known, ...taxpayers].map(calls)).toEqual(Array(41).fill(1));
  }, 120_000);

  it('go on when it is made read-only; a process that starts then says so in one line', async () => {
    const path = join(root, 'cache');
    const both = await Promise.all([start(path), start(path)]);
    const undo = makeReadOnly(path);
    repairs.push(undo);
    const id = newTaxpayer();
    for (const each of both) await read(each, id);
    expect(calls(id)).toBe(1);
    const { output, exited } = launchGateway(environment(path));
    expect(await exited).toBe(1);
    expect(output().trimEnd().split('\n')).toEqual([expect.stringMatching(/^CACHE_URL: .*(EROFS|EACCES|read-only)/i)]);
    repairs.pop();
    undo();
    await read(await start(path), id);
    expect(calls(id)).toBe(1);
  }, 60_000);

  it('never answer wrongly when its file is overwritten, also once another process has renamed it', async () => {
    const path = join(root, 'cache');
    const gateway = await start(path, { TOKEN_BUDGET_PER_HOUR: '0' }); // as above
    const isDead = () => gateway.child.exitCode !== null || gateway.child.signalCode !== null;
    const taxpayers = Array.from({ length: 60 }, newTaxpayer);
    for (const id of taxpayers) await read(gateway, id);
    const file = join(path, 'data.mdb');
    const descriptor = openSync(file, 'r+');
    const { size } = statSync(file);
    writeSync(descriptor, Buffer.alloc(size - 8192), 0, size - 8192, 8192);
    closeSync(descriptor);
    const readOrDie = (id: string) =>
      read(gateway, id).catch((error) => {
        if ((error as Error).name !== 'TypeError') throw error; // it died while it answered, which it may
      });
    for (const id of [...taxpayers, ...Array.from({ length: 40 }, newTaxpayer)]) await readOrDie(id);
    const next = await start(path);
    const other = isDead() ? await start(path) : gateway;
    const id = newTaxpayer();
    await until(
      () =>
        Promise.all([other, next].map((each) => read(each, id))).then(
          () => true,
          () => false,
        ),
      60_000,
    );
    expect(Math.max(...taxpayers.map(calls))).toBeLessThanOrEqual(3);
  }, 120_000);
});
