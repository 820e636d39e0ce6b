import { join } from 'node:path';
import { atEnd } from '../support/atEnd.js';
import {
  environmentFor,
  type GatewayProcess,
  launchGateway,
  metric,
  postQuery,
  readTaxpayer,
  spawnGateway,
  type Texts,
} from '../support/gateway.js';
import { type Sandbox, startSandbox } from '../support/sandbox.js';
import { scratch } from '../support/scratch.js';
import { times } from '../support/times.js';
import { until } from '../support/until.js';
import { makeReadOnly, smallDisk } from './support/faultyDisk.js';

describe('A gateway whose store directory has trouble while it uses it', () => {
  let root: string;
  let sandbox: Sandbox;
  beforeEach(async () => {
    root = scratch();
    sandbox = await startSandbox();
  });

  const environment = (path: string) => ({ ...environmentFor(sandbox), CACHE_URL: `file:${path}` });
  const start = (path: string, env: Texts = {}) => spawnGateway({ ...environment(path), ...env });
  const newTaxpayer = () => sandbox.addTaxpayer({ status: 'AUTHORIZED' }).id;
  const calls = (id: string) => sandbox.tokenCalls(id);
  const read = ({ origin }: GatewayProcess, id: string) => readTaxpayer(origin, id);
  const linkCode = async ({ origin }: GatewayProcess, key: string) => {
    const create = 'mutation ($key: String!) { createClientLink(input: { idempotencyKey: $key }) { replayed } }';
    return (await postQuery(origin, create, { key })).errors?.[0]?.extensions.code;
  };
  const isDegraded = async (gateway: GatewayProcess) => (await metric(gateway, 'gateway_store_degraded')) === 1;

  it('goes on by itself when the disk is full, and loses nothing of it once there is room', async () => {
    const disk = smallDisk(join(root, 'disk'));
    atEnd(disk.remove);
    const one = await start(disk.path, { TOKEN_BUDGET_PER_HOUR: '0' });
    const before = newTaxpayer();
    await read(one, before);
    disk.fill([one.pid]);
    const taxpayers = times(40, newTaxpayer);
    for (const id of [...taxpayers, ...taxpayers]) await read(one, id);
    await until(() => isDegraded(one));
    expect(one.output()).toMatch(/The directory cannot write/);
    expect(await linkCode(one, 'full')).toBe('UPSTREAM_UNAVAILABLE'); // a restart would forget the key
    disk.free([one.pid]);
    await until(async () => !(await isDegraded(one)), 45_000);
    await one.kill();
    const two = await start(disk.path);
    for (const id of [before, ...taxpayers]) await read(two, id);
    expect([before, ...taxpayers].map(calls)).toEqual(Array(41).fill(1));
    expect(one.output().match(/store unavailable/g)).toHaveLength(1);
  });

  it('goes on when it is made read-only; a process that starts then says so in one line', async () => {
    const path = join(root, 'cache');
    const one = await start(path);
    const undo = makeReadOnly(path);
    atEnd(undo);
    const id = newTaxpayer();
    await read(one, id);
    expect(calls(id)).toBe(1);
    const { output, exited } = launchGateway(environment(path));
    expect(await exited).toBe(1);
    expect(output().trimEnd().split('\n')).toEqual([expect.stringMatching(/^CACHE_URL: .*(EROFS|EACCES)/)]);
    undo();
    await until(async () => !(await isDegraded(one)));
    await one.kill();
    await read(await start(path), id);
    expect(calls(id)).toBe(1);
  }, 60_000);
});
