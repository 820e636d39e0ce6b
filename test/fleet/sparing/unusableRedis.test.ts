import { createServer } from 'node:net';
import { openStore } from '../../../src/stores/openStore.js';
import { atEnd } from '../../support/atEnd.js';
import { makeAuthority } from '../../support/certificate.js';
import { environmentFor, linesWith, postQuery, spawnGateway, startTestGateway } from '../../support/gateway.js';
import { startRedis, startRedisCluster } from '../../support/redis.js';
import { runCommand } from '../../support/runCommand.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { serve } from '../../support/serve.js';
import { startTlsFront } from '../../support/tlsFront.js';

/** What a gateway with this CACHE_URL logs about its store, and what `check` says; it must serve all the same. */
async function causesOf(CACHE_URL: string) {
  const gateway = await startTestGateway({ CACHE_URL });
  // A dozen: of a cluster, one part has the keys of a few.
  const ids = gateway.sandbox.addTaxpayers(12);
  const fields = ids.map((id, n) => `t${n}: taxpayerToken(taxpayerId: "${id}") { status }`);
  const { data, errors } = await gateway.query(`{ ${fields.join(' ')} }`);
  const tokens = Object.fromEntries(ids.map((_, n) => [`t${n}`, { status: 'CREATED' }]));
  expect({ data, errors }).toEqual({ data: tokens, errors: undefined });
  const lines = linesWith(gateway.logs, { level: 'error' });
  expect(lines).toEqual([expect.objectContaining({ msg: 'store unavailable, continuing without it' })]);
  const { code, stdout, stderr } = await runCommand({ ...environmentFor(gateway.sandbox), CACHE_URL }, ['check']);
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  return { logged: lines[0].cause, checked: /^FAILED {2}store: CACHE_URL \(.*?\): (.*)$/m.exec(stdout)?.[1] };
}

it('A database number that Redis does not have is told, and nothing is written to another', async () => {
  const server = await startRedis();
  const cause = 'Redis has no database of this number (ERR DB index is out of range)';
  expect(await causesOf(`${server.url}/99`)).toEqual({ logged: cause, checked: cause });
  expect(await server.keys()).toEqual([]);
});

const wrongKinds: readonly (readonly [string, () => Promise<string>, unknown])[] = [
  [
    'a password that is missing',
    async () => (await startRedis({ args: ['--requirepass', 'planted'] })).url,
    'Redis wants a password (NOAUTH)',
  ],
  [
    'TLS to a plain port',
    async () => (await startRedis()).url.replace('redis:', 'rediss:'),
    expect.stringMatching(/^Redis did not answer in time( \(ETIMEDOUT\))?$/),
  ],
  ...['redis+sentinel://127.0.0.1:1/main', 'redis+cluster://127.0.0.1:1'].map(
    (url) => [`nothing at ${url}`, async () => url, 'Redis cannot be reached'] as const,
  ),
  [
    'too few replicas',
    async () => (await startRedis({ args: ['--min-replicas-to-write', '1'] })).url,
    'Redis has fewer replicas than its min-replicas-to-write (NOREPLICAS)',
  ],
  ['a user who may not do what a script does', () => urlWithout('hset'), 'Redis does not permit the command (NOPERM)'],
  [
    'plain text to a TLS port',
    tlsPort,
    expect.stringMatching(/^Redis (closed the connection \(ECONNRESET\)|answered in another protocol \(EPROTO\))$/),
  ],
  [
    'the URL of a cluster for a single server',
    async () => (await startRedis()).url.replace('redis:', 'redis+cluster:'),
    'Redis is no cluster: expected redis:// in CACHE_URL (ERR This instance has cluster support disabled)',
  ],
  [
    'the URL of a sentinel for a single server',
    async () => `${(await startRedis()).url.replace('redis:', 'redis+sentinel:')}/main`,
    'Redis does not know a command that the gateway needs (ERR unknown command)',
  ],
  [
    'the URL of a single server for a part of a cluster, whatever slots it has',
    async () => `redis://127.0.0.1:${(await startRedisCluster()).nodes[0]?.port}`,
    'Redis is part of a cluster: expected redis+cluster:// in CACHE_URL (MOVED)',
  ],
];

it.each(wrongKinds)('A CACHE_URL that does not fit is told with its reason: %s', async (_, url, cause) => {
  expect(await causesOf(await url())).toEqual({ logged: cause, checked: cause });
});

it('Nobody waits for a process whose leases the store takes, and whose answers it refuses', async () => {
  const sandbox = await startSandbox();
  const env = { CACHE_URL: await urlWithout('pexpire'), UPSTREAM_BASE_URL: sandbox.url };
  const fleet = await Promise.all([startTestGateway(env), startTestGateway(env)]);
  const [id] = sandbox.addTaxpayers(1);
  for (const gateway of fleet) {
    const { data } = await gateway.query(`{ taxpayerToken(taxpayerId: "${id}") { status } }`);
    expect(data).toEqual({ taxpayerToken: { status: 'CREATED' } });
  }
});

it.each([
  ['a password for a Redis that wants none', ''],
  ['a user who may not ask for INFO', 'app'],
])('The driver of Redis writes no line of its own between those of the log: %s', async (_, user) => {
  const server = await startRedis();
  await server.command('ACL', 'SETUSER', 'app', 'on', '>planted-password', '~*', '&*', '+@all', '-info');
  const sandbox = await startSandbox();
  const env = { ...environmentFor(sandbox), CACHE_URL: `redis://${user}:planted-password@127.0.0.1:${server.port}` };
  const gateway = await spawnGateway(env);
  expect(linesWith([gateway.output()], { level: 'warn', msg: 'a library printed a warning' })).toHaveLength(1);
  expect(gateway.output()).not.toContain('planted');
  expect(await runCommand(env, ['check'])).toMatchObject({ code: 0, stderr: '' });
});

it('A slot of a cluster that moves to a master which refuses the user ASKING is told, and ends no process', async () => {
  const { nodes, url } = await startRedisCluster();
  const slot = Number(await nodes[0]?.command('CLUSTER', 'KEYSLOT', 'txgw:start')); // what every start asks for
  const from = [5461, 10923, 16384].findIndex((end) => slot < end);
  const target = await nodes[(from + 1) % 3]?.command('CLUSTER', 'MYID');
  await nodes[from]?.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', `${target}`);
  const rights = ['~*', '&*', '+@all', '-asking'];
  for (const { command } of nodes) await command('ACL', 'SETUSER', 'app', 'on', '>secret', ...rights);
  const sandbox = await startSandbox();
  const env = { ...environmentFor(sandbox), CACHE_URL: url.replace('//', '//app:secret@') };
  const gateway = await spawnGateway(env);
  const [id] = sandbox.addTaxpayers(1);
  const { data } = await postQuery(gateway.origin, `{ taxpayerToken(taxpayerId: "${id}") { status } }`);
  expect(data).toEqual({ taxpayerToken: { status: 'CREATED' } });
  const lines = linesWith([gateway.output()], { level: 'error' });
  expect(lines.map(({ cause }) => cause)).toEqual(['Redis does not permit the command (NOPERM asking)']);
});

it('A Redis that sends replies nobody waits for ends no process', async () => {
  const lie = '+OK\r\n$-1\r\n$-1\r\n';
  const liar = createServer((socket) => socket.on('data', () => socket.write(lie)).on('error', () => undefined));
  const store = await openStore((await serve(liar)).replace('http', 'redis'), { waitMs: 0 });
  atEnd(() => store.close());
  await expect(store.get('item')).rejects.toThrow('The store');
});

it('An answer of Redis that came while the process stood still is taken', async () => {
  const store = await openStore((await startRedis()).url, { waitMs: 0 });
  atEnd(() => store.close());
  const asked = store.get('item');
  for (const end = performance.now() + 1100; performance.now() < end; );
  expect(await asked).toBeUndefined();
});

it('A user who may not do what only the command forget needs is found by check', async () => {
  const env = { ...environmentFor(await startSandbox()), CACHE_URL: await urlWithout('unlink') };
  const { code, stdout } = await runCommand(env, ['check']);
  expect({ code, stdout }).toEqual({
    code: 1,
    stdout: expect.stringContaining('does not permit the command (NOPERM)'),
  });
});

/** The address of a Redis for a user who may do anything but `command`. */
async function urlWithout(command: string) {
  const { port, command: send } = await startRedis();
  await send('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', `-${command}`);
  return `redis://app:secret@127.0.0.1:${port}`;
}

/** The address, as of a plain Redis, of one that is behind TLS. */
async function tlsPort() {
  const front = await startTlsFront((await startRedis()).url, makeAuthority(scratch(), 'authority'));
  return front.url.replace('https:', 'redis:');
}
