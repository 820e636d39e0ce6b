import { setTimeout as delay } from 'node:timers/promises';
import type { Fault } from '../../support/fault.js';
import { faults } from '../../support/faults.js';
import { codesOf, type Environment, linesWith, startTestGateway } from '../../support/gateway.js';
import { startIdentityProvider } from '../../support/identityProvider.js';
import { startRedis } from '../../support/redis.js';
import { together } from '../../support/together.js';
import { until } from '../../support/until.js';

type Line = Readonly<Record<string, unknown>>;

const itMostlyWaits = together();

const started = (env: Environment = {}) =>
  startTestGateway({ UPSTREAM_TIMEOUT_MS: '5000', UPSTREAM_DEADLINE_MS: '15000', ...env });

const ofCalls = (logs: readonly string[], members = {}) =>
  linesWith(logs, members).filter(({ msg }) => /^calls/.test(String(msg)));
const readRecord = 'query($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
const readJob = 'query($id: ID!) { refreshJob(taxpayerId: $id, jobId: "job") { status } }';
const createLink = 'mutation { createClientLink(input: {}) { replayed } }';

async function lineWith(logs: readonly string[], msg: string): Promise<Line> {
  await until(() => linesWith(logs, { msg }).length > 0, 60_000);
  return linesWith(logs, { msg })[0];
}

describe('What the service did is said with its cause:', () => {
  const planted = 'planted-value';
  const causes: readonly [string, Fault, { trouble: string; cause: unknown }][] = [
    ['a status', { status: 503 }, { trouble: 'server-error', cause: 'HTTP 503' }],
    ['a reset', { cut: 'before' }, { trouble: 'network', cause: 'ECONNRESET' }],
    ['silence', { gate: 'never' }, { trouble: 'timeout', cause: 'no answer in time' }],
    [
      'a missing member',
      { set: { provider_id: undefined } },
      { trouble: 'invalid', cause: 'provider_id: Invalid input: expected string, received undefined' },
    ],
    [
      'a member of another type',
      { status: 200, body: JSON.stringify({ ...whole(planted), status: [planted] }) },
      { trouble: 'invalid', cause: 'status: Invalid input: expected string, received array' },
    ],
    [
      'another taxpayer',
      { status: 200, body: JSON.stringify(whole(planted)) },
      { trouble: 'invalid', cause: 'taxpayer_id: of another taxpayer' },
    ],
    ['401', { status: 401 }, { trouble: 'credentials-rejected', cause: expect.stringMatching(/^HTTP 401/) }],
  ];
  for (const [name, fault, told] of causes)
    itMostlyWaits(name, async () => {
      const { sandbox, query, logs, output } = await started(name === 'silence' ? { UPSTREAM_TIMEOUT_MS: '300' } : {});
      sandbox.addTaxpayer({ id: 'one', name: planted });
      sandbox.arm({ endpoint: 'taxpayerToken', fault });
      for (let n = 0; n < 3; n += 1) await query(readRecord, { id: 'one' });
      expect(ofCalls(logs, { endpoint: 'taxpayerToken' })).toMatchObject([
        { ...told, level: 'warn', msg: 'calls to the service are failing' },
      ]);
      expect(output()).not.toContain(planted);
    });

  itMostlyWaits('of a mutation, and of a job that is of another taxpayer', async () => {
    const { sandbox, query, logs, output } = await started();
    sandbox.addTaxpayer({ id: 'one' });
    sandbox.addJob({ taxpayerId: 'one', jobId: 'job' });
    const other = JSON.stringify({ status: 'completed', jobId: 'job', taxpayerId: planted, name: 'n' });
    sandbox.arm({
      endpoint: 'createClientLink',
      fault: { status: 201, body: '{}' },
    });
    sandbox.arm({ endpoint: 'refreshJob', fault: { status: 200, body: other } });
    expect(codesOf(await query(createLink))).toEqual(['OUTCOME_UNKNOWN']);
    expect(codesOf(await query(readJob, { id: 'one' }))).toEqual(['UPSTREAM_INVALID_RESPONSE']);
    expect(linesWith(logs, { trouble: 'invalid' })).toMatchObject([
      {
        endpoint: 'createClientLink',
        cause: ['id', 'url']
          .map((member) => `${member}: Invalid input: expected string, received undefined`)
          .join('; '),
      },
      { endpoint: 'refreshJob', cause: 'taxpayerId: of another taxpayer' },
    ]);
    expect(output()).not.toContain(planted);
  });

  itMostlyWaits('nothing is said of what a caller did, and of a GET that worked when it was repeated', async () => {
    const { sandbox, query, logs } = await started();
    sandbox.addTaxpayer({ id: 'one' });
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { cut: 'before' }, times: 1 });
    expect((await query(readRecord, { id: 'one' })).errors).toBeUndefined();
    await query(readRecord, { id: 'unknown' });
    expect(ofCalls(logs)).toEqual([]);
  });

  itMostlyWaits('it is over when calls work again', async () => {
    const { sandbox, query, logs, output } = await started({ BREAKER_RESET_MS: '1000', JOB_POLL_MAX_MS: '2000' });
    sandbox.addTaxpayer({ id: 'one' });
    const armed = sandbox.arm({ endpoint: 'taxpayerToken', fault: faults.html });
    await query(readRecord, { id: 'one' });
    sandbox.disarm(armed);
    // The first success seven seconds after the last failure ends it.
    await until(async () => {
      await query(readRecord, sandbox.addTaxpayer());
      await delay(200);
      return output().includes('work again');
    }, 60_000);
    const over = await lineWith(logs, 'calls to the service work again');
    const said = { endpoint: 'taxpayerToken', trouble: 'invalid', cause: 'the body is not JSON', count: 1 };
    expect(over).toMatchObject(said);
    expect(over['durationMs']).toBeGreaterThan(6999);
  });
});

it('What the store did is said with its cause: a password that Redis refuses, at the start', async () => {
  const redis = await startRedis({ args: ['--requirepass', 'right-planted'] });
  const { logs, output } = await started({ CACHE_URL: redis.url.replace('//', '//:wrong-planted@') });
  expect(linesWith(logs, { level: 'error' })).toMatchObject([
    {
      store: `redis://127.0.0.1:${redis.port}, with a password`,
      ...{ trouble: 'refused', cause: 'Redis refused the password (WRONGPASS)' },
    },
  ]);
  expect(output()).not.toContain('planted');
});

it('What the store did is said with its cause: a Redis that is full; and when it is over, for how long and how often', async () => {
  const degraded = 'store unavailable, continuing without it';
  const redis = await startRedis();
  const { sandbox, query, logs } = await started({ CACHE_URL: redis.url });
  await redis.command('CONFIG', 'SET', 'maxmemory', '1');
  for (let n = 0; n < 3; n += 1) {
    sandbox.addTaxpayer({ id: `t${n}` });
    await query(readRecord, { id: `t${n}` });
  }
  expect(await lineWith(logs, degraded)).toMatchObject({ trouble: 'refused', cause: 'Redis is out of memory (OOM)' });
  await redis.command('CONFIG', 'SET', 'maxmemory', '0');
  const over = await lineWith(logs, 'store available again');
  expect(over['durationMs']).toBeGreaterThan(0);
  expect(linesWith(logs, { msg: degraded })).toHaveLength(1);
});

itMostlyWaits('What a key set did is said with its issuer and cause, once', async () => {
  const provider = await startIdentityProvider();
  const failing = await startIdentityProvider();
  failing.behave('drop');
  const { logs, query } = await started({
    AUTH_MODE: 'jwt',
    AUTH_JWKS_URL: `${provider.jwksUrl},${failing.jwksUrl}`,
    AUTH_ISSUER: `${provider.issuer},${failing.issuer}`,
    AUTH_AUDIENCE: provider.audience,
  });
  expect(await lineWith(logs, 'a key set cannot be read')).toMatchObject({
    ...{ issuer: failing.issuer, trouble: 'network', cause: 'ECONNRESET', level: 'warn' },
  });
  const token = { authorization: `Bearer ${await failing.token({})}` };
  expect(codesOf(await query('{ __typename }', {}, token))).toEqual(['AUTH_UNAVAILABLE']);
  failing.behave('ok');
  const over = await lineWith(logs, 'the key set can be read again');
  expect(over).toMatchObject({ issuer: failing.issuer, count: expect.any(Number) });
  expect(linesWith(logs, {}).filter(({ msg }) => /key set/.test(String(msg)))).toHaveLength(2);
});

/** A whole record of the service. */
function whole(taxpayerId: string) {
  return {
    ...{ access_token: 'token-not-real', taxpayer_id: taxpayerId, name: taxpayerId, metadata: {} },
    ...{ provider_id: 'irs', created_at: '2026-01-01T00:00:00Z', status: 'AUTHORIZED' },
  };
}
