import { describe, expect, it } from '@jest/globals';
import { SealedStore } from '../../../src/cache/SealedStore.js';
import { Sealer } from '../../../src/cache/sealing.js';
import { Secret } from '../../../src/config/secret.js';
import { LocalStore } from '../../../src/stores/LocalStore.js';
import { TokenBudget } from '../../../src/upstream/TokenBudget.js';
import { startTrustedProvider } from '../../support/authenticated.js';
import { type Fleet, type FleetOptions, type Member, outcomeOf, startFleet } from '../../support/fleet.js';
import { type Answer, startTestGateway } from '../../support/gateway.js';
import { post } from '../../support/post.js';

const hour = 3_600_000;

describe('the hourly budget of token calls', () => {
  let fleet: Fleet;

  async function scene({ budgetPerHour = 64, size = 1 }: FleetOptions = {}) {
    fleet = await startFleet({ size, budgetPerHour });
    const { control } = fleet.sandbox;
    return {
      calls: () => control.counters().taxpayerToken,
      /** So many readers in turn at each member, each of a taxpayer nobody has read yet; says how many got a token. */
      read: async (members: readonly Member[], readers: number) => {
        const ids = control.addTaxpayers(readers).map((id) => fleet.ids.taxpayerId(id));
        const outcomes: string[] = [];
        const readInTurn = async ({ broker }: Member) => {
          for (let id = ids.pop(); id !== undefined; id = ids.pop()) outcomes.push(await outcomeOf(broker.record(id)));
        };
        await Promise.all(members.map(readInTurn));
        expect(outcomes.every((outcome) => ['answered', 'TOKEN_BUDGET_EXHAUSTED'].includes(outcome))).toBe(true);
        return outcomes.filter((outcome) => outcome === 'answered').length;
      },
    };
  }

  it('is used in full, whichever members ask, and begins anew each hour', async () => {
    const { read, calls } = await scene({ size: 4 });
    await read(fleet.members, 8);
    await read(fleet.members.slice(0, 2), 70);
    for (const member of fleet.members) await read([member], 20);
    expect(calls()).toBe(64);
    fleet.advance(hour);
    expect(await read(fleet.members, 10)).toBe(10);
  });
});

it('an hour that a process knows to be spent is over when the client secret changes, which names the counters', async () => {
  const secret = new Secret('before');
  const sealer = new Sealer(secret);
  const client = { baseUrl: 'https://service.example', clientId: 'acme' };
  const store = new SealedStore({ store: new LocalStore(), sealer, client, apiVersion: '1' });
  const told = { onBudget: () => {}, onExhausted: () => {} };
  const budget = new TokenBudget({ store, budgetPerHour: 1, budgetCallerShare: 1, budgetWatchShare: 1, ...told });
  await budget.spend({});
  await expect(budget.spend({})).rejects.toMatchObject({ code: 'TOKEN_BUDGET_EXHAUSTED' });
  secret.renew('after');
  sealer.renew();
  await budget.spend({});
});

describe("one caller's share of the hourly budget", () => {
  let fleet: Fleet;

  /** So many reads for `holder` at each member in turn, each of another taxpayer; says how many were answered. */
  async function read(holder: string | undefined, readers: number): Promise<number> {
    let answered = 0;
    for (const [n, id] of fleet.sandbox.control.addTaxpayers(readers).entries()) {
      const { broker } = fleet.members[n % fleet.members.length] as Member;
      const outcome = await outcomeOf(broker.record(fleet.ids.taxpayerId(id), Infinity, { holder }));
      expect(['answered', 'RATE_LIMITED', 'TOKEN_BUDGET_EXHAUSTED']).toContain(outcome);
      if (outcome === 'answered') answered += 1;
    }
    return answered;
  }

  it('is a quarter of it, whatever others take, over the whole fleet, also for ids that do not exist', async () => {
    fleet = await startFleet({ size: 2, budgetPerHour: 64, budgetCallerShare: 0.25 });
    const unknown = Array.from({ length: 100 }, (_, n) => fleet.ids.taxpayerId(`nobody-${n}`));
    for (const [n, id] of unknown.entries()) {
      await outcomeOf((fleet.members[n % 2] as Member).broker.record(id, Infinity, { holder: 'hostile' }));
    }
    expect(fleet.sandbox.control.counters().taxpayerToken).toBe(16);
    expect(await read('honest', 100)).toBe(16);
    expect(await read(undefined, 100)).toBe(32);
    fleet.advance(hour);
    expect(await read('hostile', 100)).toBe(16);
  });

  it('is at least one call', async () => {
    fleet = await startFleet({ budgetPerHour: 3, budgetCallerShare: 0.1 });
    expect(await read('one', 2)).toBe(1);
    expect(await read('another', 2)).toBe(1);
  });

  it('costs the others no call when it turns out to be spent elsewhere', async () => {
    fleet = await startFleet({ size: 4, budgetPerHour: 16, budgetCallerShare: 0.5 });
    for (const member of fleet.members) {
      const ids = fleet.sandbox.control.addTaxpayers(9).map((id) => fleet.ids.taxpayerId(id));
      for (const id of ids) await outcomeOf(member.broker.record(id, Infinity, { holder: 'greedy' }));
    }
    expect(fleet.sandbox.control.counters().taxpayerToken).toBe(8);
    expect(await read(undefined, 40)).toBe(8);
  });

  it('shows an older record as stale when it is spent', async () => {
    const freshness = { share: 0, minMs: hour };
    fleet = await startFleet({ budgetPerHour: 3, budgetCallerShare: 0.1, freshness });
    const { broker } = fleet.members[0] as Member;
    const id = fleet.ids.taxpayerId(fleet.sandbox.control.addTaxpayer().id);
    await broker.record(id);
    fleet.advance(hour);
    expect(await read('one', 1)).toBe(1);
    expect(await broker.record(id, Infinity, { holder: 'one' })).toMatchObject({ stale: true });
  });
});

describe('the share of watchers in the hourly budget', () => {
  let fleet: Fleet;

  /** So many polls, or reads, at each member in turn, each of another taxpayer; says how many were answered. */
  async function read(how: 'poll' | 'record', readers: number, holder?: string): Promise<number> {
    let answered = 0;
    for (const [n, id] of fleet.sandbox.control.addTaxpayers(readers).entries()) {
      const { broker } = fleet.members[n % fleet.members.length] as Member;
      const taxpayer = fleet.ids.taxpayerId(id);
      const call = { holder };
      const reading = how === 'poll' ? broker.poll(taxpayer, call) : broker.record(taxpayer, Infinity, call);
      if ((await outcomeOf(reading)) === 'answered') answered += 1;
    }
    return answered;
  }

  it('is a half of it, over the whole fleet, so that queries always have the other half', async () => {
    fleet = await startFleet({ size: 2, budgetPerHour: 64, budgetWatchShare: 0.5 });
    expect(await read('poll', 100)).toBe(32);
    expect(await read('record', 100)).toBe(32);
    fleet.advance(hour);
    expect(await read('record', 40)).toBe(40);
    expect(await read('poll', 100)).toBe(24);
  });

  it('spends nothing of a caller whose watches are refused', async () => {
    fleet = await startFleet({ budgetPerHour: 64, budgetCallerShare: 0.25, budgetWatchShare: 0.1 });
    expect(await read('poll', 50, 'one')).toBe(6);
    expect(fleet.members[0]?.events).toContain('watch-share-exhausted');
    expect(await read('record', 50, 'one')).toBe(16 - 6);
  });

  it('refuses no query that waits for the same read', async () => {
    fleet = await startFleet({ budgetPerHour: 64, budgetWatchShare: 0.01 });
    expect(await read('poll', 2)).toBe(1);
    const { broker } = fleet.members[0] as Member;
    const id = fleet.ids.taxpayerId(fleet.sandbox.control.addTaxpayer().id);
    const [poll, query] = await Promise.all([outcomeOf(broker.poll(id, {})), outcomeOf(broker.record(id))]);
    expect([poll, query]).toEqual(['TOKEN_BUDGET_EXHAUSTED', 'answered']);
  });
});

describe('A refused read', () => {
  it('names the cap and the setting: RATE_LIMITED at the own one, TOKEN_BUDGET_EXHAUSTED at that of the fleet', async () => {
    const provider = await startTrustedProvider();
    const gateway = await startTestGateway({ ...provider.env, TOKEN_BUDGET_PER_HOUR: '12' });
    const readAs = async (subject: string) => {
      const { id } = gateway.sandbox.control.addTaxpayer();
      const token = await provider.token({ sub: subject, scope: 'taxpayers:read', taxpayer_ids: [id] });
      const document = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
      const body = { query: document, variables: { id } };
      const answer = await post(`${gateway.origin}/graphql`, body, { authorization: `Bearer ${token}` });
      const { errors } = (await answer.json()) as Answer<object>;
      return (
        errors?.map(({ message, extensions }) => `${answer.status} ${extensions.code}: ${message}`)[0] ?? 'answered'
      );
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
});
