import { failureKeyOf, leaseKeyOf, type Store } from '../../../src/stores/Store.js';

/** One operation of a store on the keys that belong to one base key. Values and owners are Latin-1 text. */
export type Operation =
  | { readonly do: 'get'; readonly of: 'entry' | 'lease' | 'note' }
  | { readonly do: 'set' | 'claim'; readonly value: string }
  | { readonly do: 'acquire'; readonly owner: string; readonly refused?: string | undefined }
  | { readonly do: 'renew'; readonly owner: string }
  | { readonly do: 'settle'; readonly owner: string; readonly value: string; readonly to: 'entry' | 'note' }
  | { readonly do: 'delete'; readonly of: 'entry' | 'lease'; readonly expected: string }
  | { readonly do: 'increment'; readonly by: number };

/** What the keys of one base hold; undefined where there is nothing. */
interface State {
  readonly entry?: string | undefined;
  readonly lease?: string | undefined;
  readonly note?: string | undefined;
  readonly count?: number;
}

/** What was asked when, by a common clock that only counts, and what came of it. */
export interface Observation {
  readonly operation: Operation;
  readonly askedAt: number;
  readonly answeredAt: number;
  readonly result: unknown;
}

const ttlMs = 600_000; // nothing ends while it is looked at
const noteOwner = 'noted';
const bytes = (text: string) => Buffer.from(text, 'latin1');
const text = (value: Buffer | undefined) => value?.toString('latin1');

/** Does `operation` on `store`; the result is JSON. */
export async function perform(store: Store, base: string, operation: Operation): Promise<unknown> {
  const keys = { entry: base, lease: leaseKeyOf(base), note: failureKeyOf(base, noteOwner) };
  switch (operation.do) {
    case 'get':
      return text(await store.get(keys[operation.of])) ?? null;
    case 'set':
      return (await store.set(base, bytes(operation.value), ttlMs)) ?? null;
    case 'claim':
      return store.claim(base, bytes(operation.value), ttlMs);
    case 'acquire': {
      const { owner, refused } = operation;
      const turn = await store.acquire(base, bytes(owner), ttlMs, refused === undefined ? undefined : bytes(refused));
      return turn.state === 'taken'
        ? 'taken'
        : `${turn.state} ${text(turn.state === 'found' ? turn.entry : turn.owner)}`;
    }
    case 'renew':
      return store.renew(base, bytes(operation.owner), ttlMs);
    case 'settle': {
      const { owner, value, to } = operation;
      return store.settle(base, bytes(owner), { key: keys[to], value: bytes(value), ttlMs });
    }
    case 'delete':
      return store.compareAndDelete(keys[operation.of], bytes(operation.expected));
    case 'increment':
      return store.increment(`${base}:count`, operation.by, ttlMs);
    default:
      return operation satisfies never;
  }
}

/** What `operation` does to a store that does one thing after another. */
function step(state: State, operation: Operation): readonly [result: unknown, next: State] {
  switch (operation.do) {
    case 'get':
      return [state[operation.of] ?? null, state];
    case 'set':
      return [null, { ...state, entry: operation.value }];
    case 'claim':
      return state.entry === undefined ? [true, { ...state, entry: operation.value }] : [false, state];
    case 'acquire':
      if (state.entry !== undefined && state.entry !== operation.refused) return [`found ${state.entry}`, state];
      if (state.lease !== undefined) return [`held ${state.lease}`, state];
      return ['taken', { ...state, lease: operation.owner }];
    case 'renew':
      return [state.lease === operation.owner, state];
    case 'settle':
      if (state.lease !== operation.owner) return [false, state];
      return [true, { ...state, [operation.to]: operation.value, lease: undefined }];
    case 'delete':
      if (state[operation.of] !== operation.expected) return [false, state];
      return [true, { ...state, [operation.of]: undefined }];
    case 'increment': {
      const count = (state.count ?? 0) + operation.by;
      return [count, { ...state, count }];
    }
    default:
      return operation satisfies never;
  }
}

/**
 * Whether the observations can be put into one order in which each answer is right, and none stands before one that had
 * been answered when it was asked. (After Wing and Gong: every order is tried, each state with the same rest only once.)
 */
export function isLinearizable(observations: readonly Observation[]): boolean {
  const dead = new Set<string>();
  const search = (state: State, rest: readonly Observation[]): boolean => {
    if (rest.length === 0) return true;
    const mark = JSON.stringify([state, rest.map(({ askedAt }) => askedAt)]);
    if (dead.has(mark)) return false;
    const firstAnswer = Math.min(...rest.map(({ answeredAt }) => answeredAt));
    for (const next of rest.filter(({ askedAt }) => askedAt < firstAnswer)) {
      const [result, after] = step(state, next.operation);
      if (
        result === next.result &&
        search(
          after,
          rest.filter((each) => each !== next),
        )
      )
        return true;
    }
    dead.add(mark);
    return false;
  };
  return search({}, observations);
}
