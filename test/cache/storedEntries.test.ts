import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import { LmdbStore } from '../../src/stores/LmdbStore.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

const minute = 60_000;
const scopeOf = (baseUrl: string) => [baseUrl, 'test-client', '2024-01-01'];

/** What the present version writes, and what each of its members is called. */
const record = (taxpayerId: string) => ({
  accessToken: 'stored-token',
  taxpayerId,
  name: 'Stored Name',
  metadata: { from: 'store' },
  providerId: 'irs',
  createdAt: '2024-01-01T00:00:00Z',
  status: 'AUTHORIZED',
});
const job = (taxpayerId: string) => ({ taxpayerId, jobId: 'job-1', name: 'Stored Job', status: 'completed' });

const without = (object: object, member: string) =>
  Object.fromEntries(Object.entries(object).filter(([name]) => name !== member));

describe('An entry of the store', () => {
  let directory: string;
  let gateway: TestGateway;
  let store: LmdbStore;
  let sealed: SealedStore;
  let sealer: Sealer;
  let id: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'stored-entries-test-'));
    gateway = await startTestGateway({ CACHE_URL: `lmdb:${directory}` });
    store = LmdbStore.open(directory);
    sealer = new Sealer({ from: 'client-secret', secret: new Secret('test-secret') });
    sealed = new SealedStore({ store, sealer, scope: scopeOf(gateway.sandbox.url) });
  });
  beforeEach(() => {
    id = gateway.sandbox.control.addTaxpayer({ status: 'AUTHORIZED', name: 'Fetched Name' }).id;
    gateway.sandbox.control.addJob({ taxpayerId: id, jobId: 'job-1', name: 'Fetched Job', endsAs: null });
  });
  afterAll(async () => {
    await gateway.stop();
    await store.close();
    rmSync(directory, { recursive: true });
  });

  const entry = (value: unknown) => ({ version: 'a-version', fetchedAt: Date.now(), value });
  const write = (kind: string, name: string, stored: unknown) =>
    sealed.set(
      kind === 'job' ? { subject: String(name.split('/', 1)), parts: [kind, name] } : [kind, name],
      stored,
      minute,
    );

  async function tokenName() {
    const { data, errors } = await gateway.query<{ taxpayerToken: { name: string } }>(
      `query ($id: ID!) {
        taxpayerToken(taxpayerId: $id) { accessToken name metadata createdAt provider providerId status fetchedAt }
      }`,
      { id },
    );
    return errors?.[0]?.extensions.code ?? data?.taxpayerToken.name;
  }

  async function jobName() {
    const { data, errors } = await gateway.query<{ refreshJob: { name: string } }>(
      'query ($id: ID!) { refreshJob(taxpayerId: $id, jobId: "job-1") { taxpayerId jobId name status observedAt } }',
      { id },
    );
    return errors?.[0]?.extensions.code ?? data?.refreshJob.name;
  }

  it('of this version is read', async () => {
    await write('token', id, entry({ kind: 'record', record: record(id), unchangedSince: Date.now() - minute }));
    await write('job', `${id}/job-1`, entry({ job: job(id), unchangedSince: Date.now() }));
    expect([await tokenName(), await jobName()]).toEqual(['Stored Name', 'Stored Job']);
    const { control } = gateway.sandbox;
    expect([control.tokenCalls(id), control.jobCalls(id, 'job-1')]).toEqual([0, 0]);
  });

  it('of the version before, which kept no unchangedSince in its token records, is read', async () => {
    await write('token', id, entry({ kind: 'record', record: record(id) }));
    expect(await tokenName()).toBe('Stored Name');
    expect(gateway.sandbox.control.tokenCalls(id)).toBe(0);
  });

  it.each([null, 'yesterday', {}])('that is unchanged since %j is a miss', async (unchangedSince) => {
    await write('token', id, entry({ kind: 'record', record: record(id), unchangedSince }));
    expect(await tokenName()).toBe('Fetched Name');
  });

  it.each(Object.keys(record('')))('of a version that had no %s in its token records is a miss', async (member) => {
    await write('token', id, entry({ kind: 'record', record: without(record(id), member) }));
    expect(await tokenName()).toBe('Fetched Name');
  });

  it.each(['', 'with a space', 'line\nbreak', 17, null])('with the credential %j is a miss', async (accessToken) => {
    await write('token', id, entry({ kind: 'record', record: { ...record(id), accessToken } }));
    expect(await tokenName()).toBe('Fetched Name');
  });

  it.each(Object.keys(job('')))('of a version that had no %s in its job statuses is a miss', async (member) => {
    await write('job', `${id}/job-1`, entry({ job: without(job(id), member), unchangedSince: Date.now() }));
    expect(await jobName()).toBe('Fetched Job');
  });

  it.each([
    ['has no unchangedSince', () => entry({ job: job(id) })],
    ['has a job that is null', () => entry({ job: null, unchangedSince: Date.now() })],
    ['has no value', () => without(entry(0), 'value')],
    ['has no version', () => without(entry({ job: job(id), unchangedSince: 0 }), 'version')],
    ['has a time that is text', () => ({ ...entry({ job: job(id), unchangedSince: 0 }), fetchedAt: 'yesterday' })],
    ['is a list', () => [1, 2]],
    ['is null', () => null],
  ])('of a job is a miss when it %s', async (_, stored) => {
    await write('job', `${id}/job-1`, stored());
    expect(await jobName()).toBe('Fetched Job');
  });

  it.each(['null', '[]', '{"value":{}}', '{"expiresAt":"9e99","value":{}}', '17'])(
    'whose envelope is %s is a miss',
    async (text) => {
      const key = sealer.current.name([...scopeOf(gateway.sandbox.url), 'token', id]);
      await store.set(key, sealer.current.seal(key, Buffer.from(text)), minute);
      expect(await tokenName()).toBe('Fetched Name');
    },
  );

  it.each([{}, { code: 17, message: 'x' }, { code: 'toString', message: 'x' }, { code: 'NOT_FOUND' }, null])(
    'that tells of the failure %j of a lease holder is a miss',
    async (failure) => {
      await sealed.acquire(['token', id], 'a-holder', minute);
      const answer = tokenName();
      await sealed.fail(['token', id], failure, minute, 'a-holder');
      expect(await answer).toBe('Fetched Name');
    },
  );
});
