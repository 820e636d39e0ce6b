import { jest } from '@jest/globals';
import { Sealer } from '../../src/cache/Sealer.js';
import { loadConfig } from '../../src/config/config.js';
import { LineLimit } from '../../src/observability/LineLimit.js';
import { createLogger } from '../../src/observability/log.js';

interface Written {
  readonly requestId?: string;
  readonly count?: number;
  readonly operation?: string;
}

let written: Written[];
let limit: LineLimit;
let sent: number;
beforeEach(() => {
  jest.useFakeTimers();
  written = [];
  sent = 0;
  const write = (line: string) => {
    const { level, time, pid, hostname, msg, ...fields } = JSON.parse(line);
    written.push(fields);
  };
  limit = new LineLimit(createLogger('info', { write }), new Sealer(loadConfig({})), true);
});
afterEach(() => {
  jest.useRealTimers();
});

function note(operation: string) {
  sent += 1;
  const requestId = `request-${sent}`;
  limit.pass({ level: 'info', message: 'line', requestId, common: { operation }, general: {} });
}

const told = () => written.reduce((sum, { count = 1 }) => sum + count, 0);

describe('Lines that repeat', () => {
  it('are written at once the first time, then the last of a second with their count', () => {
    for (let n = 0; n < 30; n += 1) note('ada');
    expect(written).toEqual([{ requestId: 'request-1', operation: 'ada' }]);
    jest.advanceTimersByTime(1000);
    expect(written.slice(1)).toEqual([{ requestId: 'request-30', count: 29, operation: 'ada' }]);
  });

  it('are written at once again after a second without one', () => {
    note('ada');
    jest.advanceTimersByTime(1000);
    note('ada');
    expect(written).toHaveLength(2);
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(1000);
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    ['one operation', 1],
    ['thirty callers', 30],
    ['ever new callers', 1_000_000],
  ])('of %s, 10,000 a second for five seconds, are fewer than 100 lines that tell of all', (_, callers) => {
    for (let ms = 0; ms < 5000; ms += 1) {
      for (let n = 0; n < 10; n += 1) note(`operation ${sent % callers}`);
      jest.advanceTimersByTime(1);
    }
    expect(written.length).toBeLessThan(100);
    limit.flush();
    expect(told()).toBe(50_000);
  });

  it('are general, without who, when more than eight different ones come at once', () => {
    for (let n = 0; n < 20; n += 1) note(`operation ${n}`);
    jest.advanceTimersByTime(1000);
    expect(written).toEqual([
      ...written.slice(0, 8).map((_, n) => ({ requestId: `request-${n + 1}`, operation: `operation ${n}` })),
      { requestId: 'request-9', others: true },
      { requestId: 'request-20', count: 11, others: true },
    ]);
    note('in the next second');
    expect(written.at(-1)).toMatchObject({ operation: 'in the next second' });
  });

  it('are kept apart where they audit what was shown, however many there are', () => {
    for (let n = 0; n < 5000; n += 1)
      limit.audit({ action: 'record-shown', outcome: 'ok', requestId: 'r', taxpayer: `${n}` });
    expect(written).toHaveLength(5000);
  });
});
