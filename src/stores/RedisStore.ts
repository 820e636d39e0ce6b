import { once } from 'node:events';
import { Cluster, type Redis } from 'ioredis';
import { createRedisClient, keepConnected, parseRedisUrl } from './redisClient.js';
import { closed, connectionFault, replyCode, storeErrorOf, wasNotSent } from './redisFaults.js';
import { redisScripts, type ScriptedCommands } from './redisScripts.js';
import { baseKeyOf, leaseKeyOf, type Store, type StoreEntry, type Turn } from './Store.js';
import { StoreError } from './StoreError.js';
import { timeLimit } from './timeLimit.js';

const connectWaitMs = 1000; // how long opening waits for the first connection, which then goes on in the background
const prefix = 'txgw:';

/** A store in Redis or Valkey (one server, behind sentinels, or a cluster), shared by any number of machines. */
export class RedisStore implements Store {
  readonly kind = 'redis';
  readonly #client: (Redis | Cluster) & ScriptedCommands;
  #reconnecting: Promise<unknown> | undefined;
  #closing: Promise<void> | undefined;
  /** Why there is no connection; undefined while there is one. */
  #connectionFault: StoreError | undefined;
  readonly #onFault = (error: Error): void => {
    this.#connectionFault = connectionFault(error, this.#connectionFault);
  };

  /** Throws a `misconfigured` {@link StoreError} when `url` is wrong. Operations reject until the server can be reached. */
  static async open(url: string): Promise<RedisStore> {
    const client = createRedisClient(parseRedisUrl(url));
    const store = new RedisStore(client);
    const failed = new Promise<void>((resolve) => client.once('error', () => resolve()));
    const connected = client.connect().catch(store.#onFault);
    await timeLimit(() => Promise.race([connected, failed]), connectWaitMs).catch(store.#onFault);
    return store;
  }

  private constructor(client: Redis | Cluster) {
    for (const [name, script] of Object.entries(redisScripts)) client.defineCommand(name, script);
    this.#client = client as (Redis | Cluster) & ScriptedCommands;
    client.on('error', this.#onFault).on('node error', this.#onFault);
    client.on('close', () => {
      this.#connectionFault ??= closed;
    });
    client.on('ready', () => {
      this.#connectionFault = undefined;
    });
    keepConnected(client, () => !this.#closing);
  }

  get(key: string): Promise<Buffer | undefined> {
    const absentIfForeign = (error: unknown) => {
      if (replyCode(error) !== 'WRONGTYPE') throw error;
    };
    return this.#run(async () => (await this.#client.getBuffer(nameOf(key)).catch(absentIfForeign)) ?? undefined);
  }

  async set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    await this.#run(() => this.#client.set(nameOf(key), value, 'PX', wholeMs(ttlMs)));
  }

  async claim(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    return (await this.#run(() => this.#client.gatewayClaim(nameOf(key), value, wholeMs(ttlMs)))) === 1;
  }

  async acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Promise<Turn> {
    const names = [nameOf(key), nameOf(leaseKeyOf(key))] as const;
    const work = () =>
      this.#client.gatewayAcquireBuffer(...names, owner, wholeMs(ttlMs), ...(refused ? [refused] : []));
    const [state, bytes] = await this.#run(work);
    if (bytes === undefined) return { state: 'taken' };
    return String(state) === 'found' ? { state: 'found', entry: bytes } : { state: 'held', owner: bytes };
  }

  async renew(key: string, owner: Buffer, ttlMs: number): Promise<boolean> {
    return (await this.#run(() => this.#client.gatewayRenew(nameOf(leaseKeyOf(key)), owner, wholeMs(ttlMs)))) === 1;
  }

  async settle(key: string, owner: Buffer, { key: target, value, ttlMs }: StoreEntry): Promise<boolean> {
    const names = [nameOf(leaseKeyOf(key)), nameOf(target)];
    const work = () => this.#client.gatewayDelete(2, ...names, owner, value, wholeMs(ttlMs));
    return (await this.#run(work)) === 1;
  }

  async compareAndDelete(key: string, expected: Buffer): Promise<boolean> {
    return (await this.#run(() => this.#client.gatewayDelete(1, nameOf(key), expected))) === 1;
  }

  increment(key: string, by: number, ttlMs: number): Promise<number> {
    return this.#run(() => this.#client.gatewayIncrement(nameOf(key), by, wholeMs(ttlMs)));
  }

  async list(base: string): Promise<readonly string[]> {
    const nodes = this.#client instanceof Cluster ? this.#client.nodes('master') : [this.#client];
    const keys = new Set<string>();
    for (const node of nodes) {
      let cursor = '0';
      do {
        const step = await this.#run(() => node.scan(cursor, 'MATCH', `*${base}*`, 'COUNT', 1000));
        cursor = step[0];
        for (const name of step[1]) keys.add(keyOf(name));
      } while (cursor !== '0');
    }
    return [...keys].filter((key) => key.startsWith(base));
  }

  close(): Promise<void> {
    this.#closing ??= end(this.#client);
    return this.#closing;
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
      throw storeErrorOf(error, this.#connectionFault);
    }
  }

  /**
   * Waits briefly for a reconnect (after a failover, or when the server closed the connection). All callers share one wait. It
   * ends at the first failure to connect, so that a dead server costs no time.
   */
  #reconnected(): Promise<unknown> {
    this.#reconnecting ??= once(this.#client, 'ready', { signal: AbortSignal.timeout(100) })
      .catch(() => undefined)
      .finally(() => {
        this.#reconnecting = undefined;
      });
    return this.#reconnecting;
  }
}

/** Disconnects within a second. A client that is between two connections never emits `end`, so it is not waited for. */
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

/** The name in Redis. That of a derived key has its base in braces (a hash tag): a cluster then keeps both in one slot. */
function nameOf(key: string): string {
  const base = baseKeyOf(key);
  return base === key ? prefix + key : `${prefix}{${prefix}${base}}${key.slice(base.length)}`;
}

/** The key for which {@link nameOf} made `name`. */
const keyOf = (name: string): string => name.replace(/^txgw:(?:\{txgw:(.*?)\})?/, '$1');

const wholeMs = (ttlMs: number): number => Math.max(1, Math.ceil(ttlMs)); // Redis takes whole milliseconds and no zero
