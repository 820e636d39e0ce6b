import { beforeEach, describe, expect, it } from '@jest/globals';
import { startTrustedProvider } from '../../support/authenticated.js';
import { startTestDecisionPoint } from '../../support/decisionPoint.js';
import { environmentFor, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { quickPolls, watchJob } from '../../support/liveJob.js';
import { runCommand } from '../../support/runCommand.js';
import { transports } from '../../support/transports.js';
import { until } from '../../support/until.js';

// A UUID means the same in upper and lower case (RFC 9562, section 4): Swift writes it in capitals, most others do not.

const [provider, point] = await Promise.all([startTrustedProvider(), startTestDecisionPoint()]);
const gateway = await startTestGateway(quickPolls);
const guarded = await startTestGateway({ ...provider.env, AUTH_DECISION_URL: point.url, AUDIT: 'all' });

const paths = ({ sandbox }: TestGateway) => sandbox.control.requests().map(({ path }) => path);
let id: string;
let jobId: string;
/** The same ids as Swift writes them. */
let ID: string;
let JOB: string;

function addTo({ sandbox }: TestGateway): void {
  sandbox.control.resetCounters();
  ({ id } = sandbox.control.addTaxpayer({ status: 'COMPLETED', name: 'Ada' }));
  ({ jobId } = sandbox.control.addJob({ taxpayerId: id, status: 'completed' }));
  [ID, JOB] = [id.toUpperCase(), jobId.toUpperCase()];
}

describe('An id in the form of a UUID', () => {
  beforeEach(() => addTo(gateway));

  const record = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { taxpayerId taxpayer { id } } }';
  const job = `query ($id: ID!, $jobId: ID!) {
    refreshJob(taxpayerId: $id, jobId: $jobId) { taxpayerId jobId taxpayer { id token { taxpayerId } } }
  }`;

  it('is sent as the caller wrote it, and is one in the cache and in lower case in answers', async () => {
    const answer = { taxpayerToken: { taxpayerId: id, taxpayer: { id } } };
    for (const each of [ID, id, ID]) expect((await gateway.query(record, { id: each })).data).toEqual(answer);
    expect(paths(gateway)).toEqual([`/auth/tax-payer/${ID}/token`]);
  });

  it('is not unknown to all because the service does not know how one caller writes it', async () => {
    gateway.sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { status: 404 }, times: 1 });
    expect((await gateway.query(record, { id: ID })).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
    expect((await gateway.query(record, { id })).data).toMatchObject({ taxpayerToken: { taxpayerId: id } });
  });

  it('is so for a job, too', async () => {
    const answer = { refreshJob: { taxpayerId: id, jobId, taxpayer: { id, token: { taxpayerId: id } } } };
    for (const ids of [
      { id: ID, jobId: JOB },
      { id, jobId: JOB },
      { id, jobId },
    ]) {
      expect((await gateway.query(job, ids)).data).toEqual(answer);
    }
    expect(paths(gateway)).toEqual([`/auth/tax-payer/${ID}/token`, `/tax-payer/${ID}/refresh/${JOB}`]);
  });

  it('is one to those who watch, polled as one of them wrote it', async () => {
    const updates = await Promise.all(
      [
        { taxpayerId: ID, jobId: JOB },
        { taxpayerId: id, jobId },
      ].map((variables) => transports['server-sent events'](gateway, JSON.stringify({ query: watchJob, variables }))),
    );
    for (const text of updates) expect(text).toContain(`"jobId":"${jobId}","status":"COMPLETED"`);
    expect(paths(gateway)).toHaveLength(2);
    await transports['server-sent events'](
      gateway,
      JSON.stringify({
        query: 'subscription ($ID: ID!) { taxpayerTokenUpdated(taxpayerId: $ID) { taxpayerId } }',
        variables: { ID: gateway.sandbox.control.addTaxpayer({ status: 'COMPLETED' }).id.toUpperCase() },
      }),
    );
    expect(paths(gateway).at(-1)).toMatch(/^\/auth\/tax-payer\/[\dA-F-]{36}\/token$/);
  });

  it('is no example for other ids, in which upper and lower case differ', async () => {
    for (const name of ['case-sensitive', 'CASE-sensitive']) gateway.sandbox.control.addTaxpayer({ id: name, name });
    const query =
      '{ a: taxpayerToken(taxpayerId: "case-sensitive") { name } b: taxpayerToken(taxpayerId: "CASE-sensitive") { name } }';
    expect((await gateway.query(query)).data).toEqual({ a: { name: 'case-sensitive' }, b: { name: 'CASE-sensitive' } });
  });
});

describe('A caller whose taxpayer has a UUID', () => {
  beforeEach(() => addTo(guarded));
  const query = `query ($id: ID!) {
    taxpayerToken(taxpayerId: $id) { taxpayerId accessToken }
  }`;
  const scope = 'taxpayers:read taxpayer-tokens:read';

  it('is let in by capitals for a claim in lower case', async () => {
    const headers = { authorization: await provider.watcherOf([id], 300, scope) };
    expect((await guarded.query(query, { id: ID }, headers)).data).toEqual({
      taxpayerToken: { taxpayerId: id, accessToken: expect.any(String) },
    });
    expect(paths(guarded)).toEqual([`/auth/tax-payer/${ID}/token`]);
  });

  it('is asked about in lower case at a decision point, and once', async () => {
    const before = point.asked.length;
    point.allow('Ada', [id]);
    const headers = { authorization: `Bearer ${await provider.token({ sub: 'Ada', scope: 'taxpayers:read' })}` };
    for (const asked of [ID, id]) {
      const { data } = await guarded.query('query ($id: ID!) { taxpayer(id: $id) { id } }', { id: asked }, headers);
      expect(data).toEqual({ taxpayer: { id } });
    }
    expect(point.asked.slice(before).map(({ body }) => body.resource?.id)).toEqual([id]);
  });

  it('has one pseudonym in the audit log, which the command prints for either', async () => {
    const headers = { authorization: await provider.watcherOf([id], 300, scope) };
    const before = guarded.logs.length;
    for (const asked of [ID, id]) await guarded.query(query, { id: asked }, headers);
    const pseudonyms = () =>
      guarded.logs.slice(before).flatMap((line) => /"audit":.*"taxpayer":"([^"]+)"/.exec(line)?.[1] ?? []);
    await until(() => pseudonyms().length > 0);
    const env = { ...environmentFor(guarded.sandbox), CACHE_URL: 'memory:' };
    for (const asked of [ID, id]) {
      const { stdout } = await runCommand(env, ['pseudonym', asked]);
      expect([...new Set(pseudonyms())]).toEqual([stdout.trim()]);
    }
  });
});
