import { baseKeyOf, leaseKeyOf, type Store, type StoreEntry, type Turn } from '../../src/stores/Store.js';
import { StoreError } from '../../src/stores/StoreError.js';
import type { NodeRuntime } from './NodeRuntime.js';
import type { StoreFault } from './plan.js';
import type { SimulatedStore } from './SimulatedStore.js';
import type { StoreAudit } from './StoreAudit.js';
import type { World } from './World.js';

/** The present faults of the store. All connections share this object. */
export interface StoreTroubles {
  /** The fault that `node` meets now; undefined when there is none. */
  of(node: number): StoreFault | undefined;
  /** A readable name for `key` in the timeline. */
  nameOf(key: string): string;
}

/** The fate of one operation: when it takes effect, then when it is answered, in milliseconds. */
interface Fate {
  /** Undefined when it never takes effect. */
  readonly effectMs: number | undefined;
  readonly answerMs: number;
  /** The error that the process gets in place of the answer. */
  readonly error?: 'unreachable' | 'read-only' | 'timed-out';
}

/** As in the Redis driver, a lost answer becomes an error after this time, in milliseconds. */
const commandTimeoutMs = 1000;

const writes = /^(set|claim|acquire|renew|settle|compareAndDelete|increment)$/;

/** The connection of one process to the store. Its operations on one key arrive in the order sent. */
export class StoreLine implements Store {
  readonly kind = 'redis';
  readonly #arrivedAt = new Map<string, number>();
  #isClosed = false;

  constructor(
    private readonly world: World,
    private readonly node: number,
    private readonly runtime: NodeRuntime,
    private readonly store: SimulatedStore,
    private readonly troubles: StoreTroubles,
    private readonly audit?: StoreAudit,
  ) {}

  get(key: string) {
    return this.#ask('get', key, () => copyOf(this.store.get(key)));
  }

  async set(key: string, value: Buffer, ttlMs: number) {
    await this.#ask('set', key, () => {
      this.audit?.valueWritten(this.store.get(key), value);
      this.store.set(key, value, ttlMs);
    });
  }

  claim(key: string, value: Buffer, ttlMs: number) {
    const isLease = key === leaseKeyOf(baseKeyOf(key));
    return this.#ask('claim', key, () => {
      const isFree = this.store.claim(key, value, ttlMs);
      if (isFree && isLease) this.audit?.leaseTaken(this, value);
      return isFree;
    });
  }

  acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Promise<Turn> {
    return this.#ask('acquire', key, () => {
      const outcome = this.store.acquire(key, owner, ttlMs, refused);
      if (outcome.state === 'taken') this.audit?.leaseTaken(this, owner);
      return outcome;
    });
  }

  renew(key: string, owner: Buffer, ttlMs: number) {
    return this.#ask('renew', key, () => this.store.renew(key, owner, ttlMs));
  }

  settle(key: string, owner: Buffer, entry: StoreEntry) {
    this.audit?.valueCovered(entry.value);
    return this.#ask('settle', key, () => this.store.settle(key, owner, entry));
  }

  compareAndDelete(key: string, expected: Buffer) {
    return this.#ask('compareAndDelete', key, () => {
      const isDeleted = this.store.compareAndDelete(key, expected);
      if (isDeleted) this.audit?.leaseEnded(this, expected);
      return isDeleted;
    });
  }

  increment(key: string, by: number, ttlMs: number) {
    return this.#ask('increment', key, () => this.store.increment(key, by, ttlMs));
  }

  list(prefix: string) {
    return this.#ask('list', prefix, () => this.store.list(prefix));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  #ask<T>(operation: string, key: string, apply: () => T): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreError('closed'));
    const { world, runtime } = this;
    const fate = this.#fateOf(operation);
    const what = `${operation} ${this.troubles.nameOf(key)}`;
    return new Promise((resolve, reject) => {
      if (fate.error) {
        const error = new StoreError(fate.error);
        runtime.receive(fate.answerMs, () => {
          this.#tell(what, fate.error as string);
          reject(error);
        });
      }
      if (fate.effectMs === undefined) return;
      const arrivesAt = Math.max(world.now + fate.effectMs, this.#arrivedAt.get(key) ?? 0);
      this.#arrivedAt.set(key, arrivesAt);
      world.at(arrivesAt, () => {
        const result = apply();
        this.#tell(what, shown(result), fate.error && 'its answer is lost');
        if (!fate.error) runtime.receive(fate.answerMs, () => resolve(result));
        return false;
      });
    });
  }

  #fateOf(operation: string): Fate {
    const { world } = this;
    const usual = () => world.between(0.2, world.chance(0.05) ? 40 : 2);
    switch (this.troubles.of(this.node)) {
      case undefined:
        return { effectMs: usual(), answerMs: usual() };
      case 'slow':
        return { effectMs: world.between(1, 900), answerMs: world.between(1, 400) };
      case 'read-only':
        return writes.test(operation)
          ? { effectMs: undefined, answerMs: usual(), error: 'read-only' }
          : { effectMs: usual(), answerMs: usual() };
      case 'away':
        return { effectMs: undefined, answerMs: world.between(0.2, 400), error: 'unreachable' };
      case 'lossy': {
        if (world.chance(0.4)) return { effectMs: usual(), answerMs: usual() };
        if (world.chance(0.5)) return { effectMs: undefined, answerMs: usual(), error: 'unreachable' };
        const effectMs = world.chance(0.3) ? world.between(1, 2000) : usual();
        return { effectMs, answerMs: commandTimeoutMs, error: 'timed-out' };
      }
    }
  }

  #tell(what: string, result: string, note?: string): void {
    this.world.tell(`node ${this.node}`, `store ${what} → ${result}${note ? ` (${note})` : ''}`);
  }
}

const copyOf = (value: Buffer | undefined) => value && Buffer.from(value);

function shown(result: unknown): string {
  if (result === undefined) return '–';
  if (Buffer.isBuffer(result)) return `${result.length} bytes`;
  if (typeof result === 'object' && result !== null && 'state' in result) return String(result.state);
  return JSON.stringify(result);
}
