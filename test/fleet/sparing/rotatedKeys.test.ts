import { setTimeout as delay } from 'node:timers/promises';
import { anyone } from '../../../src/auth/caller.js';
import { Sealer } from '../../../src/cache/Sealer.js';
import { loadConfig } from '../../../src/config/config.js';
import { Secret } from '../../../src/config/Secret.js';
import { codesOf, postQuery, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { startRedis, type TestRedis } from '../../support/redis.js';

const [oldKey, newKey] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'));

const createLink = (origin: string, idempotencyKey: string) =>
  postQuery<{ createClientLink: { clientLink: { id: string }; replayed: boolean } }>(
    origin,
    'mutation ($idempotencyKey: String!) { createClientLink(input: { idempotencyKey: $idempotencyKey }) { clientLink { id } replayed } }',
    { idempotencyKey },
  );
const readToken = (origin: string, id: string) =>
  postQuery(origin, 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id });

const orders = [
  ['old', 'new'],
  ['new', 'old'],
] as const;

describe('Two gateways in a rolling rotation of CACHE_ENCRYPTION_KEY', () => {
  let redis: TestRedis;
  let gateways: { old: TestGateway; new: TestGateway };
  beforeAll(async () => {
    redis = await startRedis();
    const env = { CACHE_URL: redis.url, TOKEN_BUDGET_PER_HOUR: '3' };
    const old = await startTestGateway({ ...env, CACHE_ENCRYPTION_KEY: `${oldKey},${newKey},${oldKey}` });
    const keys = { CACHE_ENCRYPTION_KEY: `${newKey},${oldKey}` };
    gateways = { old, new: await startTestGateway({ ...env, ...keys, UPSTREAM_BASE_URL: old.sandbox.url }) };
  });
  beforeEach(() => gateways.old.sandbox.resetCounters());

  it.each(orders)(
    'create one link for a key: the %s one begins, the %s one waits for it and gives it again',
    async (a, b) => {
      const { sandbox } = gateways.old;
      sandbox.arm({ endpoint: 'createClientLink', fault: { gate: 'held' }, times: 1 });
      const first = createLink(gateways[a].origin, `created by ${a}`);
      await sandbox.whenCalled('createClientLink', 1);
      const second = createLink(gateways[b].origin, `created by ${a}`);
      await delay(300); // the second looks at the claim of the first
      sandbox.release('held');
      const [created, given] = [(await first).data?.createClientLink, (await second).data?.createClientLink];
      expect(created?.replayed).toBe(false);
      expect(given).toEqual({ clientLink: created?.clientLink, replayed: true });
      expect(sandbox.counters().createClientLink).toBe(1);
    },
  );

  it.each(orders)('remember an unknown outcome: of the %s one, said again by the %s one', async (a, b) => {
    const { sandbox } = gateways.old;
    sandbox.arm({ endpoint: 'createClientLink', fault: { cut: 'before' }, times: 1 });
    for (const each of [gateways[a], gateways[b]]) {
      expect(codesOf(await createLink(each.origin, `unknown to ${a}`))).toEqual(['OUTCOME_UNKNOWN']);
    }
    expect(sandbox.counters().createClientLink).toBe(1);
  });

  it('ask once for a taxpayer, and keep one budget', async () => {
    const { sandbox } = gateways.old;
    sandbox.setLatency(200);
    const [one, two, three, four] = sandbox.addTaxpayers(4) as [string, string, string, string];
    for (const id of [one, two]) {
      const both = await Promise.all([readToken(gateways.old.origin, id), readToken(gateways.new.origin, id)]);
      expect(both.flatMap(codesOf)).toEqual([]);
    }
    expect(sandbox.counters().taxpayerToken).toBe(2);
    expect(codesOf(await readToken(gateways.new.origin, three))).toEqual([]);
    expect(codesOf(await readToken(gateways.old.origin, four))).toEqual(['TOKEN_BUDGET_EXHAUSTED']);
    expect(codesOf(await readToken(gateways.new.origin, four))).toEqual(['TOKEN_BUDGET_EXHAUSTED']);
    expect(sandbox.counters().taxpayerToken).toBe(3);
  });
});

it('A gateway without the new key beside one that has it makes one more call, and never a second link', async () => {
  const redis = await startRedis();
  const env = { CACHE_URL: redis.url, UPSTREAM_TIMEOUT_MS: '500', UPSTREAM_DEADLINE_MS: '1000' };
  const next = await startTestGateway({ ...env, CACHE_ENCRYPTION_KEY: `${newKey},${oldKey}` });
  const { sandbox } = next;
  const old = await startTestGateway({ ...env, CACHE_ENCRYPTION_KEY: oldKey, UPSTREAM_BASE_URL: sandbox.url });
  const [id] = sandbox.addTaxpayers(1) as [string];
  expect(codesOf(await createLink(next.origin, 'key'))).toEqual([]);
  expect(codesOf(await createLink(old.origin, 'key'))).toEqual(['OUTCOME_UNKNOWN']);
  for (const { origin } of [next, old, next, old]) expect(codesOf(await readToken(origin, id))).toEqual([]);
  expect(sandbox.counters()).toMatchObject({ createClientLink: 1, taxpayerToken: 2 });
});

it('What is stored keeps its names: a build with others would forget idempotency keys, pauses and counts', async () => {
  const { url, command } = await startRedis();
  const gateway = await startTestGateway({ CACHE_URL: url, CACHE_ENCRYPTION_KEY: oldKey, TOKEN_BUDGET_PER_HOUR: '9' });
  const { sandbox } = gateway;
  const [known, failing] = sandbox.addTaxpayers(2) as [string, string];
  await createLink(gateway.origin, 'key');
  await readToken(gateway.origin, known);
  sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 429 }, times: 1 });
  await readToken(gateway.origin, failing);
  const sealer = new Sealer(loadConfig({ CACHE_ENCRYPTION_KEY: oldKey }));
  const names = [
    ['subject', known],
    ['token-budget', 'fleet', ''],
    ['pause', 'taxpayerToken', new Secret(sandbox.clientSecret).fingerprint()],
    ['client-link', JSON.stringify([anyone.key, 'key'])],
  ].map((parts) => `txgw:${sealer.name([sandbox.url, sandbox.clientId, ...parts])}`);
  expect(await command('KEYS', '*')).toEqual(expect.arrayContaining(names));
});
