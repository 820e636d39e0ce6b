import { tokenRequired } from '../../../src/errors/errors.js';
import { maxTries } from '../../../src/upstream/ResilientFetch.js';
import {
  type Environment,
  linesWith,
  quickPolls,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
} from '../../support/gateway.js';
import { addJob, watchJob } from '../../support/liveJob.js';
import { initSocket, rawSocket } from '../../support/rawSocket.js';
import { read } from '../../support/repository.js';
import { postEvents } from '../../support/streamReader.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const readRecord = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { name accessToken } }';
const scopes = 'client-links:create taxpayers:read taxpayer-tokens:read refresh-jobs:read';
const hash = expect.stringMatching(/^[\w-]{43}$/);

interface Line {
  readonly msg: string;
  readonly level: string;
  readonly audit?: string;
  readonly requestId?: string;
  readonly count?: number;
  readonly calls?: readonly unknown[];
  readonly [field: string]: unknown;
}

let gateway: TestGateway;
const provider = await startTrustedProvider();

async function start(env: Environment = {}) {
  gateway = await startTestGateway({ ...provider.env, ...env });
  return gateway.sandbox.addTaxpayer({ id: 'own', name: 'Ada Lovelace' }).id;
}

async function headersOf(claims: object = {}): Promise<Record<string, string>> {
  const token = await provider.token({ sub: 'Grace Hopper', scope: scopes, taxpayer_ids: ['own'], ...claims });
  return { authorization: `Bearer ${token}` };
}

const linesOf = (msg: string): Line[] => linesWith(gateway.logs, { msg });
const operations = () => linesOf('operation');
const audits = (audit: string): Line[] => linesWith(gateway.logs, { audit });

describe('The line of an operation', () => {
  it('tells everything of it, in hashes and names of ours, but not a name that may hold an id, such as an SSN', async () => {
    const id = await start({ LOG_OPERATIONS: 'all' });
    const headers = await headersOf();
    const client = { 'apollographql-client-name': 'web "app"\n', 'apollographql-client-version': 'v'.repeat(100) };
    const named = readRecord.replace('query', 'query NameOfMine');
    await gateway.query(named, { id }, { ...headers, ...client, 'x-request-id': 'cold' });
    await gateway.query(named, { id }, { ...headers, 'graphql-client-name': 'job', 'x-request-id': 'hot' });
    await gateway.query(readRecord.replace('query', 'query Of123_45_6789'), { id }, headers);
    await until(() => operations().length === 3);
    const what = {
      operation: 'taxpayerToken',
      operationName: 'NameOfMine',
      type: 'query',
      transport: 'http',
      status: 200,
    };
    const common = { level: 'info', ...what, outcome: 'ok', caller: hash, callerKind: 'bearer' };
    expect(operations()).toMatchObject([
      {
        ...common,
        requestId: 'cold',
        client: 'web app',
        clientVersion: 'v'.repeat(64),
        ms: expect.any(Number),
        calls: [{ endpoint: 'taxpayerToken', ms: expect.any(Number), outcome: 'ok' }],
      },
      { ...common, requestId: 'hot', client: 'job' },
      expect.not.objectContaining({ operationName: expect.anything() }),
    ]);
    expect(JSON.stringify(operations())).not.toMatch(/null|\[\]|\{\}|""|:0[,}]/);
    const fields = new Set(operations().flatMap(Object.keys));
    for (const own of ['level', 'time', 'msg']) fields.delete(own); // of every line
    for (const field of fields) expect(read('docs/log.md')).toContain(`\`${field}\``);
    for (const planted of ['own', 'Grace', 'Ada']) expect(gateway.output()).not.toContain(`"${planted}`);
    expect(gateway.output()).not.toContain('123_45_6789');
  });

  it('tells of tries that were repeated, and of each call once when several aliases share it', async () => {
    const id = await start({ LOG_OPERATIONS: 'all' });
    gateway.sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 503 }, times: maxTries });
    await gateway.query(readRecord, { id }, await headersOf());
    const twice =
      'query ($id: ID!) { a: taxpayerToken(taxpayerId: $id) { name } b: taxpayerToken(taxpayerId: $id) { name } }';
    await gateway.query(twice, { id }, await headersOf());
    await until(() => operations().length === 2);
    const [failed, shared] = operations();
    expect(failed).toMatchObject({
      outcome: 'failed',
      calls: Array(maxTries).fill({ endpoint: 'taxpayerToken', outcome: 'server-error' }),
    });
    expect(shared).toMatchObject({ calls: [{ outcome: 'ok' }] });
  });

  it('is written by default for what called the token endpoint, is slow, a mutation, refused, or fails', async () => {
    const id = await start();
    const headers = await headersOf();
    const { jobId } = gateway.sandbox.addJob({ taxpayerId: id });
    const readJob = 'query ($id: ID!, $jobId: ID!) { refreshJob(taxpayerId: $id, jobId: $jobId) { status } }';
    await gateway.query(readRecord, { id }, { ...headers, 'x-request-id': 'token-call' });
    await gateway.query(readRecord, { id }, { ...headers, 'x-request-id': 'from-memory' });
    gateway.sandbox.arm({ endpoint: 'refreshJob', fault: { delayMs: 1100 } });
    await gateway.query(readJob, { id, jobId }, { ...headers, 'x-request-id': 'slow' });
    await gateway.query('mutation { createClientLink(input: {}) { replayed } }', {}, headers);
    await gateway.query('{ nonsense }', {}, headers);
    await gateway.query(readRecord, { id: 'another' }, headers);
    await gateway.query(readRecord, { id });
    await fetch(`${gateway.origin}/graphql`, { method: 'POST', headers, body: '{' });
    expect(operations().map(({ type, outcome, codes, requestId }) => [type, outcome, codes, requestId])).toEqual([
      ['query', 'ok', undefined, 'token-call'],
      ['query', 'ok', undefined, 'slow'],
      ['mutation', 'ok', undefined, expect.any(String)],
      ['none', 'refused', ['GRAPHQL_VALIDATION_FAILED'], expect.any(String)],
      ['query', 'errors', ['FORBIDDEN'], expect.any(String)],
      ['none', 'refused', ['UNAUTHENTICATED'], expect.any(String)],
      ['none', 'refused', ['BAD_USER_INPUT'], expect.any(String)],
    ]);
  });

  it('tells of each call to the token endpoint, also of operations that fail alike', async () => {
    await start();
    const { sandbox } = gateway;
    const ids = sandbox.addTaxpayers(15);
    const unknown = ['a', 'b', 'c', 'd', 'e'];
    const headers = await headersOf({ taxpayer_ids: [...ids, ...unknown] });
    const fields = ids.map((id, n) => `t${n}: taxpayerToken(taxpayerId: "${id}") { status }`).join(' ');
    for (const _ of ['asks', 'asks again']) await gateway.query(`{ ${fields} }`, {}, headers);
    for (const id of unknown) await gateway.query(readRecord, { id }, headers);
    expect(sandbox.counters().taxpayerToken).toBe(20);
    await gateway.stop();
    const told = operations().map((line) => [line.outcome, line.tokenCalls, line.calls?.length]);
    // A line lists ten calls.
    expect(told).toEqual([['ok', 15, 10], ...unknown.map(() => ['errors', 1, 1])]);
  });

  it('is never written with LOG_OPERATIONS=none', async () => {
    const id = await start({ LOG_OPERATIONS: 'none' });
    await gateway.query(readRecord, { id: 'another' }, await headersOf());
    await gateway.query(readRecord, { id });
    await gateway.query('{ nonsense }', {}, await headersOf());
    await gateway.stop();
    // What is refused for its token is audited all the same.
    expect(operations().map(({ audit }) => audit)).toEqual(['token-refused']);
  });

  it.each(['sse', 'ws'] as const)(
    'of a subscription over %s comes at its end, with its length and events',
    async (transport) => {
      await start({ ...quickPolls, LOG_OPERATIONS: 'all' });
      const { taxpayerId, jobId } = addJob(gateway);
      const headers = await headersOf({ taxpayer_ids: [taxpayerId] });
      const body = { query: watchJob, variables: { taxpayerId, jobId } };
      const ended = watchOver[transport](headers, body);
      await until(() => gateway.sandbox.counters().refreshJob > 0);
      expect(operations()).toEqual([]);
      gateway.sandbox.updateJob(taxpayerId, jobId, { status: 'completed' });
      const events = await ended;
      await until(() => operations().length > 0);
      const length = { ms: expect.any(Number), events };
      const what = { operation: 'refreshJobUpdated', type: 'subscription', transport, outcome: 'ok' };
      const calls = expect.arrayContaining([expect.objectContaining({ endpoint: 'refreshJob' })]);
      expect(operations()).toMatchObject([{ ...what, ...length, client: 'watcher', caller: hash, calls }]);
      await gateway.stop();
      expect(operations()).toHaveLength(1);
    },
  );

  it('is written for a socket that was never authenticated, and for one that was refused', async () => {
    await start();
    const client = { 'apollographql-client-name': 'web', 'apollographql-client-version': '2.1' };
    const open = async (requestId: string) => {
      const socket = rawSocket(gateway.origin, { headers: { ...client, 'x-request-id': requestId } });
      await socket.opened;
      return socket;
    };
    (await initSocket(gateway, await headersOf())).end();
    (await open('silent')).end();
    provider.behave('hold');
    const left = await open('left');
    const authorization = `Bearer ${await provider.token({}, { kid: 'unknown' })}`;
    await left.sendInit({ authorization });
    left.end();
    await until(() => operations().length === 2);
    provider.release();
    const early = await open('early');
    early.subscribe({ query: '{ __typename }' });
    await early.closed;
    rawSocket(gateway.origin, { headers: { ...client, 'x-request-id': 'foreign', origin: 'https://evil.example' } });
    await until(() => operations().length === 4);
    const common = { transport: 'ws', outcome: 'refused', client: 'web', clientVersion: '2.1' };
    for (const line of operations()) expect(line).toMatchObject(common);
    expect(Object.fromEntries(operations().map(({ requestId, codes, cause }) => [requestId, [codes, cause]]))).toEqual({
      silent: [undefined, 'The socket was closed before it was authenticated'],
      left: [undefined, 'The socket was closed before it was authenticated'],
      early: [undefined, 'Unauthorized'],
      foreign: [['FORBIDDEN'], 'This origin is not allowed (CORS_ORIGINS)'],
    });
    // A browser tab that was closed was denied nothing.
    expect(operations().flatMap(({ requestId, audit }) => (audit === undefined ? [] : [requestId]))).toEqual([
      'foreign',
    ]);
  });

  const watchOver = {
    sse: async (headers: Record<string, string>, body: object) => {
      const stream = await postEvents(gateway, body, { ...headers, 'graphql-client-name': 'watcher' });
      return (await stream.text()).split('event: next').length - 1;
    },
    ws: async (parameters: Record<string, string>, payload: object) => {
      const socket = await initSocket(gateway, { ...parameters, 'GraphQL-Client-Name': 'watcher' });
      socket.subscribe(payload);
      await socket.message('complete');
      socket.end();
      return socket.received.filter(({ type }) => type === 'next').length;
    },
  };
});

describe('An audit line', () => {
  it('is written for every decision against a caller, with its reason, at a level that LOG_LEVEL does not leave out', async () => {
    const id = await start({ LOG_LEVEL: 'fatal' });
    await gateway.query(readRecord, { id: 'another' }, await headersOf());
    await gateway.query(readRecord, { id }, await headersOf({ scope: 'refresh-jobs:read' }));
    await gateway.query(readRecord, { id }, { authorization: 'Bearer made.up.token' });
    await gateway.query(readRecord, { id });
    const denied = audits('access-denied');
    expect(denied).toMatchObject([
      { level: 'audit', outcome: 'denied', reason: 'other taxpayer', caller: hash, taxpayer: hash },
      { level: 'audit', outcome: 'denied', reason: 'missing scope taxpayers:read', caller: hash },
    ]);
    expect(audits('token-refused').map(({ cause }) => cause)).toEqual([
      'The access token is not a signed JWT (RFC 7519); opaque and encrypted tokens are not accepted',
      tokenRequired,
    ]);
    expect(operations()).toEqual(audits('token-refused'));
  });

  it('is written for tokens that are shown and links, and with AUDIT=all for every record and job', async () => {
    const id = await start();
    await seeEverything(id);
    const actions = () => linesOf('audit').map(({ audit }) => audit);
    expect(actions()).toEqual(['token-revealed', 'client-link-requested']);
    expect(linesOf('audit')[0]).toMatchObject({ outcome: 'revealed', callerKind: 'bearer' });
    await gateway.stop();

    await start({ AUDIT: 'all' });
    await seeEverything(id);
    expect(actions()).toEqual(['record-shown', 'token-revealed', 'job-shown', 'client-link-requested']);
    const [record, token, job] = linesOf('audit');
    expect(new Set([record, token, job].map((line) => line?.['taxpayer'])).size).toBe(1);
  });

  it('names the same taxpayer and caller alike after a restart, and otherwise with another key', async () => {
    const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
    const names: unknown[][] = [];
    for (const env of [1, 1, 2].map((byte) => ({ CACHE_ENCRYPTION_KEY: key(byte), LOG_OPERATIONS: 'all' }))) {
      const id = await start(env);
      await gateway.query(readRecord, { id }, await headersOf());
      await gateway.query(readRecord, { id: 'another' }, await headersOf());
      await gateway.stop();
      const callers = [...audits('token-revealed'), ...operations()].map(({ caller }) => caller);
      expect([callers.length, new Set(callers).size]).toEqual([3, 1]);
      names.push(audits('token-revealed').flatMap(({ caller, taxpayer }) => [caller, taxpayer]));
    }
    expect(names[0]).toHaveLength(2);
    expect(names[1]).toEqual(names[0]);
    for (const [place, name] of (names[2] ?? []).entries()) expect(name).not.toBe(names[0]?.[place]);
  });

  async function seeEverything(id: string) {
    gateway.sandbox.addJob({ taxpayerId: id, jobId: 'job' });
    const headers = await headersOf();
    await gateway.query(readRecord, { id }, headers);
    await gateway.query('query ($id: ID!) { refreshJob(taxpayerId: $id, jobId: "job") { status } }', { id }, headers);
    await gateway.query('mutation { createClientLink(input: {}) { replayed } }', {}, headers);
  }
});

it('A flood of refusals is told in few lines, which tell of each refusal', async () => {
  const id = await start();
  const beganAt = performance.now();
  const [bad, other] = [{ authorization: 'Bearer made.up.token' }, await headersOf()];
  for (let n = 0; n < 16; n += 1) {
    const denied = times(25, (m) => gateway.query(readRecord, { id: `another ${n} ${m}` }, other));
    const refused = times(25, () => gateway.query(readRecord, { id }, bad));
    await Promise.all([...denied, ...refused]);
  }
  await gateway.stop();
  const lines = [operations(), audits('token-refused'), audits('access-denied')];
  // In each second eight different ones at most, of which each may be repeated once, and two that tell the rest of each kind.
  const seconds = (performance.now() - beganAt) / 1000;
  expect(lines.flat().length).toBeLessThanOrEqual(22 * (seconds + 1));
  const told = (lines: readonly Line[]) => lines.reduce((sum, { count = 1 }) => sum + count, 0);
  expect(lines.map(told)).toEqual([800, 400, 400]);
});
