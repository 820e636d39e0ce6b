import type { Cluster, Redis } from 'ioredis';
import { timeLimit } from './guarded.js';
import { createRedisClient, parseRedisUrl } from './redisClient.js';
import { faultAfter, hungUp, isOfAnotherType, storeErrorOf } from './redisFaults.js';
import { type Argument, redisScripts, type ScriptedCommands } from './redisScripts.js';
import type { Acquired, Field, Item, Outcome, Place, PutWhen, Store, Wish } from './Store.js';
import { StoreError } from './StoreError.js';

const connectWaitMs = 1000; // how long opening waits for a connection; after that, connecting goes on in the background
const answerWaitMs = 1000; // not by the driver's timer: after a pause of the process, that fires before the answer is read
/** Pause before a client that has given up reconnects, in milliseconds. */
const givenUpMs = 500;

/** A store in Redis or Valkey (one server, behind sentinels, or a cluster), shared by any number of machines. */
export class RedisStore implements Store {
  readonly #client: (Redis | Cluster) & ScriptedCommands;
  #isClosed = false;
  /** Why there is no connection; undefined while there is one. */
  #connectionFault: StoreError | undefined;
  readonly #onFault = (error: Error): void => {
    this.#connectionFault = faultAfter(error, this.#connectionFault);
  };

  /** Throws a ConfigError when `url` is wrong. Operations reject until the server can be reached. */
  static async open(url: string): Promise<RedisStore> {
    const client = createRedisClient(parseRedisUrl(url));
    const store = new RedisStore(client);
    await timeLimit(client.connect(), connectWaitMs).catch(store.#onFault);
    return store;
  }

  private constructor(client: Redis | Cluster) {
    for (const [name, lua] of Object.entries(redisScripts)) client.defineCommand(name, { numberOfKeys: 1, lua });
    this.#client = client as (Redis | Cluster) & ScriptedCommands;
    client.on('error', this.#onFault).on('node error', this.#onFault);
    client.on('close', () => {
      this.#connectionFault ??= hungUp;
    });
    client.on('ready', () => {
      this.#connectionFault = undefined;
    });
    const connect = () => {
      if (!this.#isClosed) client.connect().catch(() => undefined);
    };
    // The driver gives up when it learns of a failover while it asks a sentinel.
    client.on('end', () => setTimeout(connect, givenUpMs).unref());
  }

  async acquire({ record, field }: Place, { owner, leaseMs, refused = '', awaited = '' }: Wish): Promise<Acquired> {
    const args = [field, owner, wholeMs(leaseMs), refused, awaited];
    const answer = await this.#run<Buffer[]>('gatewayAcquireBuffer', record, ...args);
    const [state, first = '', second] = answer.slice(0, 3).map(String);
    if (state === 'taken') return { state, now: Number(first) };
    if (state === 'held') return { state, owner: first };
    if (state === 'failed') return { state, failure: answer[1] as Buffer };
    if (state !== 'found') throw new StoreError('refused');
    return { state, stored: { version: first, ageMs: Number(second), value: answer[3] as Buffer } };
  }

  async settle({ record, field }: Place, owner: string, outcome: Outcome): Promise<boolean> {
    const written =
      'failure' in outcome
        ? [outcome.failure ?? '']
        : [
            outcome.value,
            outcome.version,
            wholeMs(outcome.ttlMs),
            wholeMs(outcome.ageMs),
            Math.floor(outcome.begunAt), // rather too early than too late
          ];
    return (await this.#run('gatewaySettle', record, field, owner, ...written)) === 1;
  }

  forget(record: string): Promise<number> {
    return this.#run('gatewayForget', record);
  }

  note(list: string, note: Buffer): Promise<void> {
    return this.#run('gatewayNote', list, note);
  }

  async notesSince(list: string, since: number) {
    const [mark, notes] = await this.#run<[number, Buffer[]]>('gatewayNotesBuffer', list, since);
    return { notes, mark };
  }

  async fields(record: string): Promise<readonly Field[]> {
    const found = await this.#run<[string, number, number][]>('gatewayFields', record);
    return found.map(([name, ageMs, leftMs]) => ({ name, ageMs, leftMs }));
  }

  async get(key: string): Promise<Item | undefined> {
    const [leftMs, value] = await this.#run<[number, Buffer?]>('gatewayGetBuffer', key);
    return value && { value, leftMs };
  }

  async put(key: string, value: Buffer, ttlMs: number, when: PutWhen): Promise<boolean> {
    return (await this.#run('gatewayPut', key, value, wholeMs(ttlMs), when)) === 1;
  }

  async deleteIf(key: string, expected: Buffer): Promise<boolean> {
    return (await this.#run('gatewayDeleteIf', key, expected)) === 1;
  }

  async increment(key: string, ttlMs: number) {
    const answer = await this.#run<unknown[]>('gatewayIncrement', key, wholeMs(ttlMs));
    const [count = NaN, leftMs = NaN] = answer.map(Number);
    if (Number.isNaN(count + leftMs)) throw new StoreError('refused');
    return { count, leftMs };
  }

  async evictionPolicy(): Promise<string | undefined> {
    const memory = await this.#client.info('memory').catch(() => '');
    return /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#client.disconnect();
  }

  async #run<T>(script: keyof ScriptedCommands, key: string, ...args: readonly Argument[]): Promise<T> {
    if (this.#isClosed) throw new StoreError('closed');
    const name = `txgw:${key}`;
    const work = () => timeLimit<T>(this.#client[script](name, ...args), answerWaitMs);
    try {
      return await work().catch(async (error) => {
        if (!isOfAnotherType(error)) throw error;
        await this.#client.unlink(name);
        return work();
      });
    } catch (error) {
      throw storeErrorOf(error, this.#connectionFault);
    }
  }
}

const wholeMs = (ms: number): number => Math.max(1, Math.ceil(ms)); // Redis takes whole milliseconds and no zero
