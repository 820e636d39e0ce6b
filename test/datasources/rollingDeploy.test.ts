import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fetch from 'node-fetch';
import { Sealer } from '../../src/cache/sealing.js';
import { loadConfig } from '../../src/config/config.js';
import { Secret } from '../../src/config/secret.js';
import { identifierReader } from '../../src/datasources/identifiers.js';
import { createLogger } from '../../src/observability/log.js';
import { Metrics } from '../../src/observability/Metrics.js';
import { realRuntime } from '../../src/process/Runtime.js';
import { wireServices } from '../../src/services.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { outcomeOf } from '../support/fleet.js';
import { environmentFor } from '../support/gateway.js';
import { rulesBefore, schemasBefore } from '../support/rulesBefore.js';
import { type Sandbox, startSandbox } from '../support/sandbox.js';

interface Left {
  readonly link: { readonly id: string; readonly url: string };
  readonly entries: readonly { readonly key: string; readonly value: string; readonly ttlMs: number }[];
}
const recorded = JSON.parse(readFileSync(new URL('../cache/entriesOfVersions.json', import.meta.url), 'utf8')) as {
  readonly at: number;
  readonly baseUrl: string;
  readonly encryptionKey: string;
  readonly versions: Readonly<Record<'before' | 'learned', Left>>;
};

const minute = 60_000;
const day = 24 * 60 * minute;
const hourNumber = String(recorded.at / (60 * minute));
const budget = 600;
const request = { metadata: { crm: 17 } };
const idempotency = { caller: 'a-caller', key: 'a-key' };
const ids = identifierReader(256);
const [authorized, completed, refused] = ['authorized', 'completed', 'refused'].map((id) => ids.taxpayerId(id)) as [
  ReturnType<typeof ids.taxpayerId>,
  ReturnType<typeof ids.taxpayerId>,
  ReturnType<typeof ids.taxpayerId>,
];
const [ended, any] = [ids.jobId('ended'), ids.jobId('any')];

let sandbox: Sandbox;
let clock: number;
let store: MemoryStore;
let wired: ReturnType<typeof wireServices>;
let budgetLeft: number | undefined;
beforeAll(async () => {
  sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' });
  for (const id of [authorized, completed, refused]) {
    sandbox.control.addTaxpayer({
      id,
      name: 'Nobody Atall (not real)',
      metadata: { crm: 17 },
      providerId: 'irs',
      createdAt: '2026-11-01T12:00:00.000Z',
      status: id === completed ? 'COMPLETED' : 'AUTHORIZED',
      accessToken: `token-of-${id}-not-real`,
    });
  }
  sandbox.control.addJob({ taxpayerId: authorized, jobId: ended, status: 'completed' });
  sandbox.control.addJob({ taxpayerId: refused, jobId: any });
});
afterAll(() => sandbox.stop());

/** A process of this version over a store of its own, at the time of what is recorded. */
beforeEach(() => {
  sandbox.control.resetCounters();
  sandbox.control.disarmAll();
  clock = recorded.at;
  budgetLeft = undefined;
  const runtime = { ...realRuntime, now: () => clock, monotonicNow: () => performance.now() + clock };
  const clientSecret = new Secret('test-secret');
  store = new MemoryStore({ runtime: { ...runtime, monotonicNow: runtime.now } });
  wired = wireServices({
    config: loadConfig({ ...environmentFor(sandbox), TOKEN_BUDGET_PER_HOUR: String(budget) }),
    log: createLogger('silent', { write: () => {} }),
    metrics: Object.assign(new Metrics(), { onBudget: (left: number) => (budgetLeft = left) }),
    store,
    sealer: new Sealer({ from: 'encryption-key', secret: new Secret(recorded.encryptionKey) }),
    baseUrl: recorded.baseUrl, // a part of the names of entries
    fetch: ((url: string, init: object) => fetch(url.replace(recorded.baseUrl, sandbox.url), init)) as typeof fetch,
    credentials: () => ({ clientId: 'test-client', clientSecret }),
    runtime,
  });
});
afterEach(() => wired.stop());

const rules = () => rulesBefore({ ...recorded, store, clientId: 'test-client' });

async function load({ entries }: Left): Promise<void> {
  for (const { key, value, ttlMs } of entries) await store.set(key, Buffer.from(value, 'base64'), ttlMs);
}

async function refuseEveryToken(): Promise<string> {
  sandbox.control.arm({ endpoint: 'refreshJob', fault: { status: 401 } });
  const outcome = await outcomeOf(wired.jobs.status(refused, any));
  sandbox.control.disarmAll();
  return outcome;
}

describe.each([
  // A job status has another name since entries of a taxpayer can be found; a final one is read once more.
  { version: 'the version before', left: recorded.versions.before, freshForMs: 5 * minute, jobCalls: 1 },
  { version: 'this version', left: recorded.versions.learned, freshForMs: day - 10 * minute, jobCalls: 0 },
])('A process that finds what $version left', ({ left, freshForMs, jobCalls }) => {
  beforeEach(() => load(left));

  it('shows records, uses tokens and answers for jobs without an error or a token call', async () => {
    clock += 10 * minute;
    const shown = await wired.broker.record(authorized);
    expect(shown).toMatchObject({ stale: false, fetchedAt: recorded.at, record: { status: 'AUTHORIZED' } });
    expect(wired.broker.freshForMs(shown)).toBe(freshForMs);
    expect(wired.broker.freshForMs(await wired.broker.record(completed))).toBe(day - 10 * minute);
    expect((await wired.jobs.status(authorized, ended)).job.status).toBe('completed');
    expect((await wired.broker.credential(refused)).accessToken.reveal()).toBe('token-of-refused-not-real');
    expect(sandbox.control.counters()).toMatchObject({ taxpayerToken: 0, refreshJob: jobCalls });
  });

  it('keeps to the cool-down of a taxpayer whose tokens are refused', async () => {
    clock += minute / 2;
    expect(await refuseEveryToken()).toBe('TAXPAYER_NOT_AUTHORIZED');
    expect(sandbox.control.counters().taxpayerToken).toBe(0);
  });

  it('replays a link that was created', async () => {
    expect(await wired.links.create(request, idempotency)).toEqual({ link: left.link, replayed: true });
    expect(sandbox.control.counters().createClientLink).toBe(0);
  });

  it('goes on with the count of the hour', async () => {
    const spent = await rules().count('token-budget', hourNumber);
    expect(spent).toBeGreaterThan(0);
    await wired.broker.record(ids.taxpayerId(sandbox.control.addTaxpayer().id));
    expect(budgetLeft).toBe(budget - spent - 1);
  });

  it('leaves it such that the version before reads it', async () => {
    await wired.broker.record(authorized);
    await refuseEveryToken();
    await expectReadable(left.link);
  });
});

it('A process that begins with an empty store leaves one that the version before reads', async () => {
  await wired.broker.record(authorized);
  expect(await refuseEveryToken()).toBe('TAXPAYER_NOT_AUTHORIZED');
  const { link } = await wired.links.create(request, idempotency);
  await expectReadable(link);
  expect(await rules().count('token-budget', hourNumber)).toBeGreaterThanOrEqual(3);
  // One call for a job that it has not read itself; never something that it cannot read.
  expect(await rules().read(schemasBefore.token, 'job', `${authorized}/${ended}`)).toBeUndefined();
});

async function expectReadable(link: Left['link']): Promise<void> {
  const { read } = rules();
  const { accessToken, ...record } = (await wired.broker.record(authorized)).record;
  const stored = await read(schemasBefore.token, 'token', authorized);
  expect(stored?.record).toEqual({ ...record, accessToken: accessToken.reveal() });
  expect(await read(schemasBefore.refusal, 'token', 'refused', refused)).toMatch(/^[\w-]{36}$/);
  expect(await read(schemasBefore.link, 'client-link', 'a-caller', 'a-key')).toMatchObject({ link });
}
