import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisStore } from '../../src/stores/RedisStore.js';
import { atEnd } from '../support/atEnd.js';
import { freePort } from '../support/freePort.js';
import { startRedis } from '../support/redis.js';
import { scratch } from '../support/scratch.js';
import { serve } from '../support/serve.js';
import { until } from '../support/until.js';

/** A sentinel that, from `fails` on, tells all its clients of a failover when all of them are asking it for the master. */
class LateSentinel {
  fails = false;
  /** The subscriptions that it refused; undefined while it refuses none. */
  refused: number | undefined;
  readonly server = createServer((socket) => this.#serve(socket));
  readonly listeners = new Set<Socket>();
  #asking: (() => void)[] = [];

  constructor(private readonly masterPort: number) {}

  #serve(socket: Socket): void {
    socket.on('error', () => undefined);
    socket.once('close', () => this.listeners.delete(socket));
    socket.on('data', async (data) => {
      for (const command of commandsIn(String(data))) socket.write(await this.#answerTo(command, socket));
    });
  }

  async #answerTo(command: string, socket: Socket): Promise<string> {
    if (command.startsWith('sentinel sentinels')) return array([]);
    if (command.startsWith('subscribe')) {
      if (this.refused !== undefined) {
        this.refused += 1;
        return '-NOAUTH Authentication required.\r\n';
      }
      this.listeners.add(socket);
      return `*3\r\n${bulk('subscribe')}${bulk('+switch-master')}:1\r\n`;
    }
    if (!command.startsWith('sentinel get-master')) return '+OK\r\n';
    if (this.fails) {
      const told = new Promise<void>((resolve) => this.#asking.push(resolve));
      if (this.#asking.length === this.listeners.size) void this.#tell();
      await told;
    }
    return array(['127.0.0.1', `${this.masterPort}`]);
  }

  async #tell(): Promise<void> {
    for (const listener of this.listeners) listener.write(array(['message', '+switch-master', 'main']));
    await sleep(50);
    this.fails = false;
    for (const answer of this.#asking) answer();
  }
}

/** The commands of a request in RESP: each is an array of strings, and lengths stand before the array and each string. */
function commandsIn(request: string): readonly string[] {
  const withoutLengths = request.replaceAll(/\$\d+\r\n/g, '');
  const commands = withoutLengths.split(/\*\d+\r\n/).slice(1);
  return commands.map((command) => command.trim().replaceAll('\r\n', ' ').toLowerCase());
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;
const array = (texts: readonly string[]) => `*${texts.length}\r\n${texts.map(bulk).join('')}`;

const worksIn = (store: RedisStore) => () =>
  store.put('key', Buffer.from('value'), 60_000, 'always').then(
    () => true,
    () => false,
  );

it('the store is used again when a sentinel tells of a failover while it is asked for the master, and when it refuses to tell', async () => {
  const redis = await startRedis();
  const sentinel = new LateSentinel(redis.port);
  const { host } = new URL(await serve(sentinel.server));
  const store = await RedisStore.open(`redis+sentinel://${host}/main`);
  atEnd(() => store.close());
  const works = worksIn(store);
  expect(await works()).toBe(true);
  await until(() => sentinel.listeners.size === 1);
  sentinel.fails = true;
  await redis.command('CLIENT', 'KILL', 'TYPE', 'NORMAL');
  await until(() => !sentinel.fails);
  await until(works);

  // A sentinel restarts with a password: a minute later the driver subscribes again, and looks at no answer.
  await until(() => sentinel.listeners.size === 1);
  sentinel.refused = 0;
  for (const listener of sentinel.listeners) listener.destroy();
  await until(() => sentinel.refused === 1, 90_000);
  expect(await works()).toBe(true); // an unhandled rejection would fail this test, and end a gateway
});

it('a cluster is found again by its URL when all its nodes have other addresses', async () => {
  const startNode = async () => {
    const ports = ['--cluster-announce-ip', '127.0.0.1', '--cluster-port', `${await freePort()}`];
    const args = ['--cluster-enabled', 'yes', '--cluster-config-file', join(scratch(), 'nodes.conf'), ...ports];
    const node = await startRedis({ args });
    await node.command('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
    return node;
  };
  let node = await startNode();
  const endpoint = createServer((socket) => {
    pipeline(socket, connect(node.port, '127.0.0.1'), socket, () => undefined);
  });
  const { host } = new URL(await serve(endpoint));
  await until(async () => /state:ok/.test(String(await node.command('CLUSTER', 'INFO'))));
  const store = await RedisStore.open(`redis+cluster://${host}`);
  atEnd(() => store.close());
  const works = worksIn(store);
  await until(works);
  await node.kill();
  node = await startNode();
  await until(works, 20_000);
});
