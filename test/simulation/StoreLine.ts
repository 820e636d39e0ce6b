import type { Acquired, Store, Wish } from '../../src/stores/Store.js';
import { StoreError } from '../../src/stores/StoreError.js';
import type { NodeRuntime } from './NodeRuntime.js';
import type { StoreFault } from './plan.js';
import type { SimulatedStore, StoreOperation } from './SimulatedStore.js';
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
  readonly error?: 'unreachable' | 'refused' | 'timed-out';
}

/** As in the Redis driver, a lost answer becomes an error after this time, in milliseconds. */
const commandTimeoutMs = 1000;

const writes = /^(put|settle|deleteIf|increment|forget|note)$/;

/** The connection of one process to the store. Its operations on one key arrive in the order sent. */
export class StoreLine implements Store {
  readonly #arrivedAt = new Map<string, number>();
  #isClosed = false;

  constructor(
    private readonly world: World,
    private readonly node: number,
    private readonly runtime: NodeRuntime,
    private readonly store: SimulatedStore,
    private readonly troubles: StoreTroubles,
  ) {}

  acquire: Store['acquire'] = (...args) => this.#ask('acquire', args[0].record, args);
  settle: Store['settle'] = (...args) => this.#ask('settle', args[0].record, args);
  forget: Store['forget'] = (...args) => this.#ask('forget', args[0], args);
  note: Store['note'] = (...args) => this.#ask('note', args[0], args);
  notesSince: Store['notesSince'] = (...args) => this.#ask('notesSince', args[0], args);
  fields: Store['fields'] = (...args) => this.#ask('fields', args[0], args);
  get: Store['get'] = (...args) => this.#ask('get', args[0], args);
  put: Store['put'] = (key, value, ...how) => this.#ask('put', key, [key, Buffer.from(value), ...how]);
  deleteIf: Store['deleteIf'] = (...args) => this.#ask('deleteIf', args[0], args);
  increment: Store['increment'] = (...args) => this.#ask('increment', args[0], args);

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  #ask<T>(operation: StoreOperation, key: string, args: readonly unknown[]): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreError('closed'));
    const { world, runtime } = this;
    const fault = this.troubles.of(this.node);
    const fate = this.#fateOf(operation, fault);
    const what = `${operation} ${this.troubles.nameOf(key)}`;
    return new Promise((resolve, reject) => {
      const fail = (error: NonNullable<Fate['error']>) => {
        const known = new StoreError(error);
        runtime.receive(fate.answerMs, () => {
          this.#tell(what, error);
          reject(known);
        });
      };
      if (fate.error) fail(fate.error);
      if (fate.effectMs === undefined) return;
      const arrivesAt = Math.max(world.now + fate.effectMs, this.#arrivedAt.get(key) ?? 0);
      this.#arrivedAt.set(key, arrivesAt);
      world.at(arrivesAt, async () => {
        const isReadOnly = fault === 'read-only' && operation === 'acquire';
        const given = isReadOnly ? [args[0], { ...(args[1] as Wish), leaseMs: 0 }] : args;
        const result = (await this.store.do(operation, given)) as T;
        this.#tell(what, shown(result), fate.error && 'its answer is lost');
        if (fate.error) return;
        if (isReadOnly && (result as Acquired).state === 'taken') fail('refused');
        else runtime.receive(fate.answerMs, () => resolve(result));
      });
    });
  }

  #fateOf(operation: string, fault: StoreFault | undefined): Fate {
    const { world } = this;
    const usual = () => world.between(0.2, world.chance(0.05) ? 40 : 2);
    switch (fault) {
      case undefined:
        return { effectMs: usual(), answerMs: usual() };
      case 'slow':
        return { effectMs: world.between(1, 900), answerMs: world.between(1, 400) };
      case 'read-only':
        return writes.test(operation)
          ? { effectMs: undefined, answerMs: usual(), error: 'refused' }
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

  #tell(what: string, result: string, note?: string) {
    this.world.tell(`node ${this.node}`, `store ${what} → ${result}${note ? ` (${note})` : ''}`);
  }
}

function shown(result: unknown) {
  if (result === undefined) return '–';
  if (typeof result !== 'object' || result === null) return String(result);
  if ('state' in result) return String(result.state);
  return 'count' in result ? String(result.count) : `${Object.keys(result).length}`;
}
