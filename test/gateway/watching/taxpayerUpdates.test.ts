import { afterEach, describe, expect, it } from '@jest/globals';
import { startTrustedProvider } from '../../support/authenticated.js';
import { startTestGateway } from '../../support/gateway.js';
import { metric } from '../../support/liveJob.js';
import { rawSocket } from '../../support/rawSocket.js';
import { eventReader, postEvents } from '../../support/streamReader.js';
import { until } from '../../support/until.js';

const query = `subscription ($taxpayerId: ID!) {
  taxpayerTokenUpdated(taxpayerId: $taxpayerId) { taxpayerId status stale taxpayer { id } }
}`;
const withToken = `subscription ($taxpayerId: ID!) {
  taxpayerTokenUpdated(taxpayerId: $taxpayerId) { status accessToken }
}`;

const provider = await startTrustedProvider();
const quick = { TOKEN_FRESH_SECONDS: '1' };
const gateway = await startTestGateway(quick);
const guarded = await startTestGateway({ ...quick, ...provider.env });

afterEach(async () => {
  for (const each of [gateway, guarded])
    await until(async () => (await metric(each, 'gateway_watchers{kind="record"}')) === 0);
});

describe('taxpayerTokenUpdated', () => {
  it('brings the record as it is, then each change, and ends after a final status', async () => {
    const { control } = gateway.sandbox;
    const { id } = control.addTaxpayer({ status: 'CREATED' });
    const events = eventReader(await post({ taxpayerId: id }));
    const update = (status: string) => ({
      data: { data: { taxpayerTokenUpdated: { taxpayerId: id, status, stale: false, taxpayer: { id } } } },
    });
    expect(await events.next()).toMatchObject(update('CREATED'));
    control.updateTaxpayer(id, { status: 'CONSENT_RECEIVED' });
    expect(await events.next()).toMatchObject(update('CONSENT_RECEIVED'));
    control.updateTaxpayer(id, { status: 'REJECTED' });
    expect(await events.next()).toMatchObject(update('REJECTED'));
    expect(await events.next()).toMatchObject({ event: 'complete' });
  });

  it('reports what will not pass, and ends', async () => {
    const events = eventReader(await post({ taxpayerId: 'nobody' }));
    expect(await events.next()).toMatchObject({ data: { errors: [{ extensions: { code: 'NOT_FOUND' } }] } });
    expect(await events.next()).toMatchObject({ event: 'complete' });
  });

  it('ends with the token of the caller', async () => {
    const { id } = guarded.sandbox.control.addTaxpayer({ status: 'CREATED' });
    const authorization = await provider.watcherOf([id], 2, 'taxpayers:read');
    const events = eventReader(await watchAs(authorization, id));
    expect(await events.next()).toMatchObject({ data: { data: { taxpayerTokenUpdated: { status: 'CREATED' } } } });
    expect(await events.next()).toMatchObject({ data: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] } });
    expect(await events.next()).toMatchObject({ event: 'complete' });
  });

  it.each([
    ['without the taxpayer', ['another'], 'taxpayers:read'],
    ['without the scope', undefined, 'refresh-jobs:read taxpayer-tokens:read'],
  ])('is refused %s, before any call', async (_, taxpayers, scope) => {
    const { id } = guarded.sandbox.control.addTaxpayer({ status: 'CREATED' });
    const before = guarded.sandbox.control.counters();
    const events = eventReader(await watchAs(await provider.watcherOf(taxpayers ?? [id], 300, scope), id));
    expect(await events.next()).toMatchObject({ data: { errors: [{ extensions: { code: 'FORBIDDEN' } }] } });
    expect(guarded.sandbox.control.counters()).toEqual(before);
  });

  it('shows the access token, and audits it, only to callers with its scope, at each event', async () => {
    const { control } = guarded.sandbox;
    const { id, accessToken } = control.addTaxpayer({ status: 'CREATED' });
    // Equal ones within a second are one line.
    const audited = () => {
      const lines = guarded.logs.filter((line) => line.includes('"audit":"token-revealed"'));
      return lines.reduce((sum, line) => sum + ((JSON.parse(line) as { count?: number }).count ?? 1), 0);
    };
    const before = audited();
    const without = eventReader(await watchAs(await provider.watcherOf([id], 300, 'taxpayers:read'), id, withToken));
    expect(await without.next()).toMatchObject({
      data: {
        data: { taxpayerTokenUpdated: { status: 'CREATED', accessToken: null } },
        errors: [{ path: ['taxpayerTokenUpdated', 'accessToken'], extensions: { code: 'FORBIDDEN' } }],
      },
    });
    const scope = 'taxpayers:read taxpayer-tokens:read';
    const entitled = eventReader(await watchAs(await provider.watcherOf([id], 300, scope), id, withToken));
    const shown = (status: string) => ({ data: { data: { taxpayerTokenUpdated: { status, accessToken } } } });
    expect(await entitled.next()).toMatchObject(shown('CREATED'));
    control.updateTaxpayer(id, { status: 'COMPLETED' });
    expect(await entitled.next()).toMatchObject(shown('COMPLETED'));
    await until(() => audited() - before >= 2);
    expect(audited() - before).toBe(2);
    expect(guarded.logs.join('\n')).not.toContain(accessToken);
    await Promise.all([without.cancel(), entitled.cancel()]);
  });

  it('counts among the watches of its caller', async () => {
    const small = await startTestGateway({ ...provider.env, MAX_CONNECTIONS: '4' });

    const { id } = small.sandbox.control.addTaxpayer({ status: 'CREATED' });
    const { jobId } = small.sandbox.control.addJob({ taxpayerId: id, endsAs: null });
    const socket = rawSocket(small.origin);
    await socket.init({ authorization: await provider.watcherOf([id]) });
    socket.send({ type: 'subscribe', id: '1', payload: { query, variables: { taxpayerId: id } } });
    await socket.message(({ type }) => type === 'next');
    const job = `subscription { refreshJobUpdated(taxpayerId: "${id}", jobId: "${jobId}") { status } }`;
    socket.send({ type: 'subscribe', id: '2', payload: { query: job } });
    const refused = await socket.message((message) => message.id === '2');
    expect(refused.payload).toMatchObject({ errors: [{ extensions: { code: 'RATE_LIMITED' } }] });
    socket.end();
  });
});

function post(variables: object): Promise<Response> {
  return postEvents(gateway, { query, variables });
}

function watchAs(authorization: string, taxpayerId: string, document = query): Promise<Response> {
  return postEvents(guarded, { query: document, variables: { taxpayerId } }, { authorization });
}
