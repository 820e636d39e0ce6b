import { jest } from '@jest/globals';
import { Quota } from '../../../src/admission/Quota.js';
import { anyone, type Caller, router } from '../../../src/auth/caller.js';
import type { GatewayError } from '../../../src/errors/errors.js';
import { startTestGateway } from '../../support/gateway.js';
import { times } from '../../support/times.js';

const ada: Caller = { ...anyone, holder: 'ada' };
const bob: Caller = { ...anyone, holder: 'bob' };

/** How many of that many operations get through. */
function admitted(quota: Quota, caller: Caller, operations: number, address?: string) {
  return times(operations, () => refusal(quota, caller, address)).filter((error) => error === undefined).length;
}

function refusal(quota: Quota, caller: Caller, address?: string): GatewayError | undefined {
  try {
    quota.admit({ caller, remoteAddress: address });
    return undefined;
  } catch (error) {
    return error as GatewayError;
  }
}

describe('the limit of operations per caller', () => {
  let now = 60_000;
  beforeEach(() => {
    jest.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  test("lets a minute's through at once, then evenly, and says when the next is due", () => {
    const quota = new Quota(5);
    expect(admitted(quota, ada, 9)).toBe(5);
    expect(admitted(quota, bob, 9)).toBe(5);
    now += 4_500;
    expect(refusal(quota, ada)).toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterSeconds: 8,
      httpStatus: 429,
      message: 'At most 5 root fields per minute (RATE_LIMIT_PER_MINUTE)',
    });
    now += 7_500;
    expect(admitted(quota, ada, 9)).toBe(1);
    now += 60_000;
    expect(admitted(quota, ada, 9)).toBe(5);
  });

  test('lets through as much as it promises to many who wait as long as they are told, and ask for several fields', () => {
    const quota = new Quota(60);
    const asker = { caller: ada, remoteAddress: undefined };
    /** Asks for ten fields; returns how long to wait before asking again, in seconds. */
    const ask = () => {
      try {
        quota.admit(asker);
        quota.takeOtherFields(asker, 9);
        return undefined;
      } catch (error) {
        return (error as GatewayError).retryAfterSeconds;
      }
    };
    expect(times(7, ask)).toEqual([...Array(6).fill(undefined), 1]); // for the first field
    const clients = times(20, () => ({ dueAt: now }));
    let admittedFields = 0;
    for (const endsAt = now + 60_000; now < endsAt; now += 500) {
      for (const client of clients) {
        if (client.dueAt > now) continue;
        const seconds = ask();
        admittedFields += seconds === undefined ? 10 : 0;
        client.dueAt = now + 1000 * (seconds ?? 0);
      }
    }
    expect(admittedFields).toBeGreaterThanOrEqual(50);
  });

  test('lets through all that it promises, whatever the time is', () => {
    for (now = 60_000; now < 61_000; now += Math.PI) {
      for (const perMinute of [1, 7, 1200]) expect(admitted(new Quota(perMinute), ada, perMinute + 1)).toBe(perMinute);
    }
  });

  test('tells callers without an identity apart by address, and those with one by who they are', () => {
    const quota = new Quota(5);
    expect(admitted(quota, anyone, 9, '192.0.2.1')).toBe(5);
    expect(admitted(quota, anyone, 9, '192.0.2.2')).toBe(5);
    expect(admitted(quota, router, 9, '192.0.2.1')).toBe(5);
    expect(admitted(quota, router, 9, '192.0.2.2')).toBe(0);
  });
});

describe('a document with many root fields', () => {
  const fields = (count: number) => `{ ${times(count, (n) => `a${n}: __typename`).join(' ')} }`;

  test('counts as that many documents with one, whatever executes it', async () => {
    const gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '50' });
    let answered = 0;
    while ((await gateway.query(fields(5))).status === 200) answered += 1;
    expect(answered).toBe(10);
  });

  test('is refused when more is asked for than is left, on every transport', async () => {
    const gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '10' });
    const { status, errors, headers } = await gateway.query(fields(11));
    expect(status).toBe(429);
    const retryAfterSeconds = Number(headers.get('retry-after'));
    expect(retryAfterSeconds).toBeGreaterThan(0);
    expect(errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED', retryAfterSeconds } }]);
    const stream = await fetch(`${gateway.origin}/graphql/stream?query=${encodeURIComponent(fields(11))}`, {
      headers: { accept: 'text/event-stream', 'apollo-require-preflight': 'yes' },
    });
    expect(await stream.text()).toContain('RATE_LIMITED');
    expect((await gateway.query(fields(5))).status).toBe(200); // what was refused has not used up the limit
  });
});
