import { once } from 'node:events';
import { Cluster, type Redis } from 'ioredis';
import { DeleteWaiters, type PollPace } from './DeleteWaiters.js';
import { createRedisClient, parseRedisUrl, type RedisClientOptions } from './redisClient.js';
import { redisScripts, type ScriptedCommands } from './redisScripts.js';
import { baseKeyOf, type Count, leaseKeyOf, type Store, type StoreEntry, type Turn } from './Store.js';
import { StoreError, type StoreTrouble } from './StoreError.js';
import { timeLimit } from './timeLimit.js';

export interface RedisStoreOptions extends RedisClientOptions {
  /** Pace of looking for a deletion whose message was lost. Default 50 ms slowing to 250 ms. */
  readonly pollPace?: PollPace;
  /** How long opening waits for the first connection before it leaves that to the background. Default 1000 ms. */
  readonly connectWaitMs?: number;
}

const prefix = 'txgw:';
/** Where the names of deleted keys are published. */
const channel = `${prefix}deleted`;

/** A store in Redis or Valkey (one server, behind sentinels, or a cluster), shared by any number of machines. */
export class RedisStore implements Store {
  readonly kind = 'redis';
  readonly #client: (Redis | Cluster) & ScriptedCommands;
  readonly #pollPace: PollPace;
  readonly #waiters = new DeleteWaiters();
  #subscriber: Redis | Cluster | undefined;
  #subscribed = false;
  #reconnecting: Promise<unknown> | undefined;
  #closing: Promise<void> | undefined;

  /**
   * Opens the store at `url`. A server that cannot be reached is no error here: operations reject until it can be.
   * Throws a `misconfigured` {@link StoreError} when the URL is wrong.
   */
  static async open(url: string, options: RedisStoreOptions = {}): Promise<RedisStore> {
    const store = new RedisStore(createRedisClient(parseRedisUrl(url), options), options);
    await store.#connect(options.connectWaitMs ?? 1000);
    return store;
  }

  private constructor(client: Redis | Cluster, options: RedisStoreOptions) {
    for (const [name, script] of Object.entries(redisScripts)) client.defineCommand(name, script);
    this.#client = client as (Redis | Cluster) & ScriptedCommands;
    this.#pollPace = options.pollPace ?? { firstMs: 50, maxMs: 250 };
  }

  async get(key: string): Promise<Buffer | undefined> {
    return this.#run(async () => {
      try {
        return (await this.#client.getBuffer(nameOf(key))) ?? undefined;
      } catch (error) {
        if (replyCode(error) === 'WRONGTYPE') return undefined;
        throw error;
      }
    });
  }

  async set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    await this.#run(() => this.#client.set(nameOf(key), value, 'PX', wholeMs(ttlMs)));
  }

  async claim(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    return (await this.#run(() => this.#client.gatewayClaim(nameOf(key), value, wholeMs(ttlMs)))) === 1;
  }

  async acquire(key: string, owner: Buffer, ttlMs: number, refused: Buffer = Buffer.alloc(0)): Promise<Turn> {
    const names = [nameOf(key), nameOf(leaseKeyOf(key))] as const;
    const work = () => this.#client.gatewayAcquireBuffer(...names, owner, wholeMs(ttlMs), refused);
    const [state, bytes] = await this.#run(work);
    if (bytes === undefined) return { state: 'taken' };
    return String(state) === 'found' ? { state: 'found', entry: bytes } : { state: 'held', owner: bytes };
  }

  async settle(key: string, owner: Buffer, { key: target, value, ttlMs }: StoreEntry): Promise<boolean> {
    const names = [nameOf(leaseKeyOf(key)), nameOf(target)] as const;
    const work = () => this.#client.gatewaySettle(...names, owner, value, wholeMs(ttlMs), channel);
    return (await this.#run(work)) === 1;
  }

  async compareAndDelete(key: string, expected: Buffer): Promise<boolean> {
    const name = nameOf(key);
    return (await this.#run(() => this.#client.gatewayCompareAndDelete(name, expected, channel))) === 1;
  }

  async increment(key: string, by: number, ttlMs: number): Promise<Count> {
    const name = nameOf(key);
    const [count, resetsInMs] = await this.#run(() => this.#client.gatewayIncrement(name, by, wholeMs(ttlMs)));
    return { count, resetsInMs: Math.max(0, resetsInMs) };
  }

  async waitForDelete(key: string, timeoutMs: number): Promise<void> {
    if (this.#closing) return;
    this.#subscribe();
    const name = nameOf(key);
    const isGone = async () => (await this.#run(() => this.#client.exists(name))) === 0;
    await this.#waiters.waitPolling(name, timeoutMs, this.#pollPace, isGone);
  }

  close(): Promise<void> {
    this.#waiters.wakeAll();
    const clients = new Set([this.#client, this.#subscriber ?? this.#client]);
    this.#closing ??= Promise.all([...clients].map(end)).then(() => undefined);
    return this.#closing;
  }

  async #connect(waitMs: number): Promise<void> {
    const failed = new Promise<void>((resolve) => this.#client.once('error', () => resolve()));
    const connected = this.#client.connect().catch(() => undefined);
    await timeLimit(() => Promise.race([connected, failed]), waitMs).catch(() => undefined);
  }

  /**
   * One connection, opened when the first waiter comes, hears of all deletions and resubscribes by itself. When it cannot
   * subscribe, the waiters look for themselves and the next one tries again.
   */
  #subscribe(): void {
    if (this.#subscribed) return;
    this.#subscribed = true;
    if (!this.#subscriber) {
      // A cluster client keeps a subscriber connection of its own.
      this.#subscriber =
        this.#client instanceof Cluster ? this.#client : this.#client.duplicate({ enableOfflineQueue: true });
      this.#subscriber.on('error', () => undefined);
      this.#subscriber.on('message', (_channel: string, name: string) => this.#waiters.wake(name));
    }
    this.#subscriber.subscribe(channel).catch(() => {
      this.#subscribed = false;
    });
  }

  /**
   * Bridges the moment of a reconnect (after a failover, or a connection the server closed), so that it is not taken for a
   * miss. Shared by all who come in it; over at the first failure to connect, so a dead server costs nothing.
   */
  #reconnected(): Promise<unknown> {
    this.#reconnecting ??= once(this.#client, 'ready', { signal: AbortSignal.timeout(100) })
      .catch(() => undefined)
      .finally(() => {
        this.#reconnecting = undefined;
      });
    return this.#reconnecting;
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw new StoreError('closed');
    try {
      return await work().catch(async (error) => {
        if (!wasNotSent(error)) throw error;
        await this.#reconnected();
        return work();
      });
    } catch (error) {
      throw new StoreError(troubleOfRedis(error));
    }
  }
}

/** Resolves when the client has ended, or after a second: a client caught between two connections never says so. */
async function end(client: Redis | Cluster): Promise<void> {
  if (client.status === 'end') return;
  const ended = once(client, 'end').catch(() => undefined);
  const between = client.status === 'reconnecting';
  const nodes = client instanceof Cluster ? client.nodes() : [client];
  client.disconnect();
  if (!between) await timeLimit(() => ended, 1000).catch(() => undefined);
  // The driver forgets to clear this timer when a command was still unanswered, which would keep the process alive.
  for (const node of nodes) clearTimeout(Reflect.get(node, 'socketTimeoutTimer'));
}

const troubleOfReply: Readonly<Record<string, StoreTrouble>> = {
  OOM: 'full',
  MISCONF: 'full',
  READONLY: 'read-only',
  NOREPLICAS: 'read-only',
  NOAUTH: 'not-permitted',
  WRONGPASS: 'not-permitted',
  NOPERM: 'not-permitted',
  LOADING: 'unreachable',
  MASTERDOWN: 'unreachable',
  CLUSTERDOWN: 'unreachable',
  TRYAGAIN: 'unreachable',
  BUSY: 'timed-out',
};

/** The drivers' other errors say that the connection is lost or that no answer came. */
function troubleOfRedis(error: unknown): StoreTrouble {
  const code = replyCode(error);
  if (code !== undefined) return troubleOfReply[code] ?? 'failed';
  return error instanceof Error && error.message === 'Command timed out' ? 'timed-out' : 'unreachable';
}

/** The first word of an error the server replied with, such as `WRONGTYPE`; older servers quote that of a script. */
function replyCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return undefined;
  return /^ERR Error running script .*?: -([A-Z]+) /.exec(error.message)?.[1] ?? error.message.split(' ', 1)[0];
}

/** The driver had no connection to send the command on, so it can be tried again without doing anything twice. */
function wasNotSent(error: unknown): boolean {
  return error instanceof Error && error.message.includes('enableOfflineQueue');
}

/** A derived key has the name of its base in braces: a cluster then keeps both in one slot, where one script may use them. */
function nameOf(key: string): string {
  const base = baseKeyOf(key);
  return base === key ? prefix + key : `${prefix}{${prefix}${base}}${key.slice(base.length)}`;
}

/** Redis takes whole milliseconds and no zero. */
function wholeMs(ttlMs: number): number {
  return Math.max(1, Math.ceil(ttlMs));
}
