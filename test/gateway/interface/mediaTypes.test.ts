import { once } from 'node:events';
import { post, startTestGateway, startTrustedProvider, type Texts } from '../../support/gateway.js';
import { watchJob } from '../../support/liveJob.js';
import { rawHttp } from '../../support/rawHttp.js';
import { transports } from '../../support/transports.js';

const typename = '{"query":"{ __typename }"}';
const json = 'application/json';
const responseJson = 'application/graphql-response+json';
const events = 'text/event-stream';

const gateway = await startTestGateway();

const ask = (path: string, headers: Texts) => post(gateway.origin + path, typename, headers);

/** The media type of a stream or an answer, or the status of a refusal. */
async function typeOrStatus(response: Response) {
  await response.body?.cancel();
  const type = response.headers.get('content-type')?.replace(/; charset=utf-8$|;subscriptionSpec.*$/, '');
  return response.status === 200 ? type : response.status;
}

describe('an Accept header', () => {
  it.each<[string, string | number]>([
    ['*/*', json],
    ['', json],
    [`${responseJson};charset=iso-8859-1, ${json}`, json],
    [`${json};q=0.9, ${responseJson};q=1.0`, responseJson],
    [`${responseJson}, ${json}`, responseJson],
    [`${responseJson};q=0, ${json}`, json],
    [`${responseJson};q=0.2, */*`, json],
    [`${responseJson}, application/graphql+json, ${json}, ${events}, multipart/mixed`, responseJson],
    [`*/*, ${json};q=0`, responseJson],
    ['text/html', 406],
    [`${events};charset=UTF-8`, events],
    [`${events};q=0`, 406],
    ['multipart/mixed;boundary="graphql";subscriptionSpec="1.0", application/json', json],
    ['multipart/mixed;boundary="graphql";subscriptionSpec="1.0"', 'multipart/mixed;boundary="graphql"'],
    ['Multipart/Mixed; SubscriptionSpec = 1.0', 'multipart/mixed;boundary="graphql"'],
    [`multipart/mixed;subscriptionSpec=1.0;q=0, ${json}`, json],
  ])('%j is answered with %s', async (accept, expected) => {
    for (const time of ['first', 'next']) {
      expect([time, await typeOrStatus(await ask('/graphql', { accept }))]).toEqual([time, expected]);
    }
  });

  const multipart = 'multipart/mixed;boundary="graphql";subscriptionSpec="1.0"';
  it.each<[string, string | number]>([
    ['*/*', 400],
    [events, events],
    [`${responseJson}, application/graphql+json, ${json}, ${events}, multipart/mixed`, events],
    [`${multipart}, ${json}`, 'multipart/mixed;boundary="graphql"'],
    [`${multipart}, ${events};q=0.5, */*;q=0.1`, 'multipart/mixed;boundary="graphql"'],
    [json, 200],
    [responseJson, 422],
    [`multipart/mixed, ${responseJson}`, 422],
    [`multipart/mixed;deferSpec=20220824, ${json}`, 200],
  ])('%j with a subscription is answered with %s', async (accept, expected) => {
    const query =
      'subscription { taxpayerTokenUpdated(taxpayerId: "44444444-4444-4444-8444-444444444444") { status } }';
    const response = await post(`${gateway.origin}/graphql`, { query }, { accept });
    if (typeof expected === 'number') {
      const words = expect.stringMatching('needs a stream');
      expect([response.status, await response.text()]).toEqual([expected, words]);
    } else expect(await typeOrStatus(response)).toBe(expected);
  });

  it('with a stream lets a GET subscribe as well', async () => {
    const query = encodeURIComponent('subscription { refreshJobUpdated(taxpayerId: "a", jobId: "b") { status } }');
    const send = (accept: string) =>
      fetch(`${gateway.origin}/graphql?query=${query}`, { headers: { accept, 'content-type': 'application/json' } });
    expect(await typeOrStatus(await send(`${json}, ${events}`))).toBe(events);
    expect(await typeOrStatus(await send(`${json}, ${multipart}`))).toBe('multipart/mixed;boundary="graphql"');
  });

  it.each(['*/*', json])('%j on the path of streams gets events', async (accept) => {
    expect(await typeOrStatus(await ask('/graphql/stream', { accept }))).toBe(events);
  });
});

const ways: readonly [string, string, string][] = [
  ['plain HTTP', '/graphql', json],
  ['an event stream', '/graphql/stream', events],
  ['a multipart subscription', '/graphql', 'multipart/mixed;subscriptionSpec=1.0'],
];

it.each(ways)('a Content-Type tells nothing of the charset, which is always UTF-8: %s', async (_, path, accept) => {
  const headersWith = (rest: string) => ({ accept, 'content-type': `${json}${rest}` });
  for (const rest of ['; charset=utf-16', ' ; CHARSET="utf8"', '; x=y', ';']) {
    const response = await ask(path, headersWith(rest));
    expect([rest, response.status]).toEqual([rest, 200]);
    await response.body?.cancel();
  }
  const body = Buffer.from(typename, 'utf16le');
  const refusal = await post(gateway.origin + path, '', headersWith('; charset=utf-16'), { body });
  expect([refusal.status, await refusal.text()]).toEqual([400, expect.stringContaining('valid JSON in UTF-8')]);
});

const provider = await startTrustedProvider();
const closed = await startTestGateway(provider.env);

describe('before authentication', () => {
  it('a refusal has the media type that its caller accepts', async () => {
    const response = await post(`${closed.origin}/graphql`, typename, { accept: responseJson });
    expect([response.status, response.headers.get('content-type')]).toEqual([401, `${responseJson}; charset=utf-8`]);
  });

  it.each(['multipart/mixed', 'multipart/mixed;', 'multipart/mixed; ', ',', ';', 'a/b;c="', 'a;a=,', ' '])(
    'no Accept header costs more than a few milliseconds: %j again and again',
    async (piece) => {
      const accept = `a${piece.repeat(Math.floor(15_000 / piece.length))}`;
      let shortest = Number.POSITIVE_INFINITY;
      for (let n = 0; n < 20; n += 1) {
        const connection = rawHttp(closed.origin);
        await once(connection.socket, 'connect');
        const startedAt = performance.now();
        connection.write('POST /graphql HTTP/1.1', 'Host: x', `Accept: ${accept}`, 'Content-Length: 0', '', '');
        expect([401, 406]).toContain((await connection.answer())?.status);
        shortest = Math.min(shortest, performance.now() - startedAt);
        connection.end();
      }
      expect(shortest).toBeLessThan(8);
    },
  );
});

it.each<[string, object, string]>([
  ['a name of no operation', { query: 'query A { __typename }', operationName: 'B' }, 'operationName must name one'],
  [
    'no name of several',
    { query: 'query A { a: __typename } query B { b: __typename }' },
    'several operations: set operationName',
  ],
  [
    'a persisted query',
    { extensions: { persistedQuery: { version: 1, sha256Hash: '00' } } },
    'PersistedQueryNotSupported',
  ],
  ['a syntax error', { query: '{' }, 'Syntax Error'],
  [
    'a value in place of an id',
    { query: watchJob, variables: { taxpayerId: { ssn: '078-05-1120' }, jobId: 'j' } },
    'Variable taxpayerId does not have',
  ],
  [
    'null in place of an id',
    { query: watchJob, variables: { taxpayerId: null, jobId: 'j' } },
    'Variable taxpayerId must not be null: expected ID!',
  ],
])('A refusal of %s is told in the same words on every transport', async (_, request, words) => {
  const isStream = JSON.stringify(request).includes('subscription');
  for (const [transport, send] of Object.entries(transports)) {
    if (transport === 'HTTP' && isStream) continue;
    if (transport === 'WebSocket' && !('query' in request)) continue; // not a message of its protocol
    const answer = await send(gateway, JSON.stringify(request));
    expect([transport, answer]).toEqual([transport, expect.stringContaining(words)]);
    expect(answer).not.toContain('078-05');
  }
});
