import { describe, expect, it } from '@jest/globals';
import { isLinearizable, type Observation, type Operation } from '../support/stores/storeModel.js';

describe('The search for an order', () => {
  const told = (what: Operation, askedAt: number, answeredAt: number, result: unknown): Observation => ({
    operation: what,
    askedAt,
    answeredAt,
    result,
  });
  const acquire = (owner: string): Operation => ({ do: 'acquire', owner });

  it('finds one where answers overlap, and none where two have the lease or a write is not seen', () => {
    expect(isLinearizable([told(acquire('a'), 0, 3, 'held b'), told(acquire('b'), 1, 2, 'taken')])).toBe(true);
    expect(isLinearizable([told(acquire('a'), 0, 3, 'taken'), told(acquire('b'), 1, 2, 'taken')])).toBe(false);
    expect(isLinearizable([told(acquire('a'), 0, 1, 'held b'), told(acquire('b'), 2, 3, 'taken')])).toBe(false);
    const written = told({ do: 'set', value: 'x' }, 0, 1, null);
    expect(isLinearizable([written, told({ do: 'get', of: 'entry' }, 2, 3, null)])).toBe(false);
    expect(isLinearizable([written, told({ do: 'get', of: 'entry' }, 2, 3, 'x')])).toBe(true);
  });
});
