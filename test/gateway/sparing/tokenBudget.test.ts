import { jest } from '@jest/globals';
import { SealedStore } from '../../../src/cache/SealedStore.js';
import { Sealer } from '../../../src/cache/Sealer.js';
import { Secret } from '../../../src/config/Secret.js';
import type { ReadCall } from '../../../src/datasources/TaxpayerService.js';
import { LocalStore } from '../../../src/stores/LocalStore.js';
import { StoreError } from '../../../src/stores/StoreError.js';
import { TokenBudget } from '../../../src/upstream/TokenBudget.js';
import { type Fleet, type Member, outcomeOf, startFleet } from '../../support/fleet.js';
import { startTestGateway, startTrustedProvider } from '../../support/gateway.js';

const hour = 3_600_000;

let fleet: Fleet;

const calls = () => fleet.sandbox.counters().taxpayerToken;

/** Shares out reads of so many taxpayers to `members`, who all read at once; gives how many were answered. */
async function readBy(members: readonly Member[], count: number, call: ReadCall = {}) {
  const ids = fleet.addTaxpayers(count);
  const outcomes: string[] = [];
  const readInTurn = async ({ broker }: Member) => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
      outcomes.push(await outcomeOf(broker.record(id, call)));
    }
  };
  await Promise.all(members.map(readInTurn));
  expect(['answered', 'RATE_LIMITED', 'TOKEN_BUDGET_EXHAUSTED']).toEqual(expect.arrayContaining(outcomes));
  return outcomes.filter((outcome) => outcome === 'answered').length;
}

const read = (count: number, holder?: string) => readBy(fleet.members, count, { holder });
const poll = (count: number, holder?: string) => readBy(fleet.members, count, { holder, isWatch: true });

it('the hourly budget of token calls is used in full, whichever members ask, and begins anew each hour', async () => {
  fleet = await startFleet({ size: 4, TOKEN_BUDGET_PER_HOUR: 64 });
  await read(8);
  await readBy(fleet.members.slice(0, 2), 70);
  for (const member of fleet.members) await readBy([member], 20);
  expect(calls()).toBe(64);
  fleet.advance(hour);
  expect(await read(10)).toBe(10);
});

it('an hour that a process knows to be spent is over when the client secret changes, which names the counters', async () => {
  const secret = new Secret('before');
  const sealer = new Sealer({ UPSTREAM_CLIENT_SECRET: secret, CACHE_ENCRYPTION_KEY: undefined });
  const upstream = { UPSTREAM_BASE_URL: '', UPSTREAM_CLIENT_ID: '', UPSTREAM_API_VERSION: '' };
  const store = new SealedStore({ store: new LocalStore(), sealer, ...upstream });
  const told = { onBudget: () => {}, onEvent: () => {} };
  const limits = { TOKEN_BUDGET_PER_HOUR: 1, TOKEN_BUDGET_CALLER_SHARE: 1, budgetWatchShare: 1 };
  const budget = new TokenBudget({ store, ...limits, ...told });
  await budget.spend({});
  await expect(budget.spend({})).rejects.toMatchObject({ code: 'TOKEN_BUDGET_EXHAUSTED', retryAfterSeconds: 3600 });
  secret.renew('after');
  sealer.renew();
  await budget.spend({});
});

describe("one caller's share of the hourly budget", () => {
  it('is a quarter of it, whatever others take, over the whole fleet, also for ids that do not exist', async () => {
    fleet = await startFleet({ size: 2, TOKEN_BUDGET_PER_HOUR: 64, TOKEN_BUDGET_CALLER_SHARE: 0.25 });
    for (let n = 0; n < 100; n += 1) {
      const { broker } = fleet.members[n % 2] as Member;
      await outcomeOf(broker.record(fleet.ids.taxpayerId(`nobody-${n}`), { holder: 'hostile' }));
    }
    expect(calls()).toBe(16);
    expect(await read(100, 'honest')).toBe(16);
    expect(await read(100)).toBe(32);
    fleet.advance(hour);
    expect(await read(100, 'hostile')).toBe(16);
  });

  it('is at least one call; when it is spent, an older record is shown as stale', async () => {
    const freshness = { share: 0, minMs: hour };
    fleet = await startFleet({ TOKEN_BUDGET_PER_HOUR: 3, TOKEN_BUDGET_CALLER_SHARE: 0.1, freshness });
    const { broker } = fleet.one;
    const id = fleet.addTaxpayer();
    await broker.record(id);
    fleet.advance(hour);
    expect(await read(1, 'one')).toBe(1);
    expect(await broker.record(id, { holder: 'one' })).toMatchObject({ stale: true });
  });
});

describe('the share of watchers in the hourly budget', () => {
  it('is a half of it, over the whole fleet, so that queries always have the other half', async () => {
    fleet = await startFleet({ size: 2, TOKEN_BUDGET_PER_HOUR: 64, budgetWatchShare: 0.5 });
    expect(await poll(100)).toBe(32);
    expect(await read(100)).toBe(32);
    fleet.advance(hour);
    expect(await read(40)).toBe(40);
    expect(await poll(100)).toBe(24);
  });

  it('spends nothing of a caller whose watches are refused', async () => {
    fleet = await startFleet({ TOKEN_BUDGET_PER_HOUR: 64, TOKEN_BUDGET_CALLER_SHARE: 0.25, budgetWatchShare: 0.1 });
    expect(await poll(50, 'one')).toBe(6);
    expect(fleet.one.events).toContain('watch-share-exhausted');
    expect(await read(50, 'one')).toBe(16 - 6);
  });

  it('is not used up by what is beyond the share of one caller', async () => {
    fleet = await startFleet({ TOKEN_BUDGET_PER_HOUR: 64, TOKEN_BUDGET_CALLER_SHARE: 0.25, budgetWatchShare: 0.5 });
    await Promise.all(
      fleet.addTaxpayers(32).map((id) => outcomeOf(fleet.one.broker.record(id, { holder: 'one', isWatch: true }))),
    );
    expect(await poll(50, 'another')).toBe(16);
  });

  it('refuses no query that waits for the same read', async () => {
    fleet = await startFleet({ TOKEN_BUDGET_PER_HOUR: 64, budgetWatchShare: 0.01 });
    expect(await poll(2)).toBe(1);
    const { broker } = fleet.one;
    const id = fleet.addTaxpayer();
    const outcomes = await Promise.all([outcomeOf(broker.record(id, { isWatch: true })), outcomeOf(broker.record(id))]);
    expect(outcomes).toEqual(['TOKEN_BUDGET_EXHAUSTED', 'answered']);
  });
});

it('A refused read names the cap and the setting: RATE_LIMITED at the own one, TOKEN_BUDGET_EXHAUSTED at that of the fleet', async () => {
  const provider = await startTrustedProvider();
  const gateway = await startTestGateway({ ...provider.env, TOKEN_BUDGET_PER_HOUR: '12' });
  const readAs = async (subject: string) => {
    const { id } = gateway.sandbox.addTaxpayer();
    const token = await provider.token({ sub: subject, scope: 'taxpayers:read', taxpayer_ids: [id] });
    const document = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
    const { status, errors } = await gateway.query(document, { id }, { authorization: `Bearer ${token}` });
    return errors?.map(({ message, extensions }) => `${status} ${extensions.code}: ${message}`)[0] ?? 'answered';
  };

  const own = '429 RATE_LIMITED: At most 3 token calls per hour for one caller (TOKEN_BUDGET_CALLER_SHARE)';
  for (const subject of ['one', 'two', 'three', 'four']) {
    const outcomes = [];
    for (let n = 0; n < 5; n += 1) outcomes.push(await readAs(subject));
    expect(outcomes).toEqual(['answered', 'answered', 'answered', own, own]);
  }
  const fleets = '200 TOKEN_BUDGET_EXHAUSTED: At most 12 token calls per hour for the fleet (TOKEN_BUDGET_PER_HOUR)';
  for (let n = 0; n < 5; n += 1) expect(await readAs('five')).toBe(fleets);
  expect(await readAs('one')).toBe(own);
});

it('While the store does not answer, a process has an eighth of the budget and of each share in an hour', async () => {
  jest.spyOn(LocalStore.prototype, 'increment').mockRejectedValue(new StoreError('unreachable'));
  fleet = await startFleet({ TOKEN_BUDGET_PER_HOUR: 64, TOKEN_BUDGET_CALLER_SHARE: 0.25 });
  expect(await read(9, 'one')).toBe(2);
  fleet.advance(hour / 2);
  expect(await read(9)).toBe(6);
  fleet.advance(hour / 2);
  expect(await read(9)).toBe(8);
  jest.restoreAllMocks();
});
