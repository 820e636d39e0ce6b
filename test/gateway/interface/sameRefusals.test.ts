import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { watchJob } from '../../support/liveJob.js';
import { transports } from '../../support/transports.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());

it.each<[string, object, string]>([
  ['no query', {}, 'The request must have a query'],
  ['an empty query', { query: '' }, 'The request must have a query'],
  ['a name of no operation', { query: 'query A { __typename }', operationName: 'B' }, 'operationName must name one'],
  ['no name of several', { query: 'query A { a: __typename } query B { b: __typename }' }, 'set operationName'],
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
])('%s is told in the same words on every transport', async (_, request, words) => {
  const isStream = JSON.stringify(request).includes('subscription');
  for (const [transport, send] of Object.entries(transports)) {
    if (transport === 'HTTP' && isStream) continue;
    if (transport === 'WebSocket' && !('query' in request)) continue; // not a message of its protocol
    const answer = await send(gateway, JSON.stringify(request));
    expect([transport, answer]).toEqual([transport, expect.stringContaining(words)]);
    expect(answer).not.toContain('078-05');
  }
});
