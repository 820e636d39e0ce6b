import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { atEnd } from './atEnd.js';
import { freePort } from './freePort.js';
import { startProgram } from './program.js';
import { run } from './run.js';
import { scratch } from './scratch.js';
import { times } from './times.js';
import { until } from './until.js';

export type TestRedis = Awaited<ReturnType<typeof startRedis>>;

/** A real redis-server on a free loopback port, without persistence, unless `more` arguments say otherwise. */
export async function startRedis({ args: more = [] as readonly string[] } = {}) {
  const port = await freePort();
  const args = [
    ...['--dir', scratch()], // a replica writes what it receives to disk
    ...['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--protected-mode', 'no'],
    ...more,
  ];
  let server = await spawnRedis(args);

  async function connected<T>(work: (client: Redis) => Promise<T>): Promise<T> {
    const client = new Redis({ port, host: '127.0.0.1' });
    client.on('error', () => undefined);
    try {
      return await work(client);
    } finally {
      client.disconnect();
    }
  }

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid;
    },
    /** Runs one command on a connection of its own. */
    command: (name: string, ...rest: readonly (string | Buffer | number)[]): Promise<unknown> =>
      connected((client) => client.call(name, ...rest)),
    keys: () => connected((client) => client.keys('*')),
    /** Every key and its raw value in one buffer, as an attacker with a copy of the memory would see them. */
    dump: () =>
      connected(async (client) => {
        const keys = await client.keys('*');
        const values = await Promise.all(keys.map((key) => client.dumpBuffer(key)));
        return Buffer.concat([...keys.map((key) => Buffer.from(key)), ...values.map((value) => value ?? Buffer.of())]);
      }),
    /** Stops answering without closing any connection (SIGSTOP). */
    pause: () => void server.signal('SIGSTOP'),
    resume: () => void server.signal('SIGCONT'),
    /** SIGKILL; resolves when the process is gone. */
    kill: () => server.kill(),
    /** Starts again on the same port after {@link kill}, empty. */
    restart: async () => {
      server = await spawnRedis(args);
    },
  };
}

/** Three masters that share the slots. */
export async function startRedisCluster() {
  const directory = scratch();
  const nodes = await Promise.all(
    [0, 1, 2].map(async (n) => {
      const busPort = await freePort();
      const file = join(directory, `${n}.conf`);
      const cluster = ['--cluster-enabled', 'yes', '--cluster-port', `${busPort}`, '--cluster-config-file', file];
      return { busPort, redis: await startRedis({ args: [...cluster, '--cluster-node-timeout', '2000'] }) };
    }),
  );
  const bounds = [0, 5461, 10923, 16384];
  for (const [n, { redis }] of nodes.entries()) {
    await redis.command('CLUSTER', 'ADDSLOTSRANGE', bounds[n] ?? 0, (bounds[n + 1] ?? 0) - 1);
    await redis.command('CLUSTER', 'SET-CONFIG-EPOCH', n + 1);
  }
  const [first, ...others] = nodes;
  for (const { busPort, redis } of others) {
    await first?.redis.command('CLUSTER', 'MEET', '127.0.0.1', redis.port, busPort);
  }
  for (const { redis } of nodes) {
    await until(async () => {
      const info = String(await redis.command('CLUSTER', 'INFO'));
      return /cluster_state:ok/.test(info) && /cluster_known_nodes:3/.test(info);
    });
  }
  const masters = nodes.map(({ redis }) => redis);
  return {
    url: `redis+cluster://${masters.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes: masters,
    /** Moves `slots` slots with their keys from one master to another, with redis-cli; resolves when they are moved. */
    reshard: async (from: number, to: number, slots: number) => {
      const [source, target] = await Promise.all([from, to].map((n) => masters[n]?.command('CLUSTER', 'MYID')));
      const ends = ['--cluster-from', `${source}`, '--cluster-to', `${target}`];
      const order = ['--cluster', 'reshard', `127.0.0.1:${masters[0]?.port}`, ...ends, '--cluster-slots', `${slots}`];
      await run('redis-cli', [...order, '--cluster-yes'], { maxBuffer: 1 << 26 });
    },
  };
}

/** A master, its replicas, and one sentinel that watches them under the name `main`. */
export async function startRedisSentinel({ replicas: count = 1, args = [] as readonly string[] } = {}) {
  const directory = scratch();
  const master = await startRedis({ args });
  const following = ['--replicaof', '127.0.0.1', `${master.port}`, '--repl-diskless-sync-delay', '0', ...args];
  const replicas = await Promise.all(times(count, () => startRedis({ args: following })));
  const port = await freePort();
  const file = join(directory, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${directory}`,
    `sentinel monitor main 127.0.0.1 ${master.port} 1`,
    'sentinel down-after-milliseconds main 1500',
    'sentinel failover-timeout main 10000',
  ];
  await writeFile(file, `${lines.join('\n')}\n`);
  await spawnRedis([file, '--sentinel'], /Sentinel ID is|\+monitor/);
  const client = new Redis({ port, host: '127.0.0.1' });
  client.on('error', () => undefined);
  atEnd(() => client.disconnect());
  const knowsReplicas = async () => {
    const states = (await client.call('SENTINEL', 'REPLICAS', 'main')) as string[][];
    return states.filter((state) => state.includes('slave-priority') && state.includes('ok')).length === count;
  };
  await until(knowsReplicas);
  const hasNewMaster = async () => {
    const address = (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main')) as string[];
    return replicas.some((replica) => address[1] === `${replica.port}`);
  };
  return {
    url: `redis+sentinel://127.0.0.1:${port}/main`,
    /** The first is the master at the beginning. */
    nodes: [master, ...replicas],
    /** Makes a replica the master; resolves when the sentinel says so. */
    failover: async () => {
      await until(() =>
        client.call('SENTINEL', 'FAILOVER', 'main').then(
          () => true,
          () => false, // NOGOODSLAVE until the replica's state has been read
        ),
      );
      await until(hasNewMaster);
    },
    /** Kills the master, and starts it again, empty, once the sentinel has replaced it. */
    killMaster: async () => {
      await master.kill();
      await until(hasNewMaster, 30_000);
      await master.restart();
    },
  };
}

/** Calls `listener` with each later command of Redis, its words joined, and its source. */
export async function monitorCommands(url: string, listener: (command: string, source: string) => void): Promise<void> {
  // On a client that never connects itself: its own commands could arrive between MONITOR and the answer to it.
  const monitor = await new Redis(url, { lazyConnect: true }).monitor();
  monitor.on('monitor', (_time: string, args: string[], source: string) => listener(args.join(' '), source));
  atEnd(() => monitor.disconnect());
}

async function spawnRedis(args: readonly string[], ready = /Ready to accept connections/) {
  const server = startProgram('redis-server', args);
  await server.printed(ready);
  return server;
}
