import { auditServer } from 'graphql-http';
import { newText, post, startTestGateway, type TestGateway, type Texts } from '../../support/gateway.js';

const responseJson = 'application/graphql-response+json';
const preflight = { 'apollo-require-preflight': '1' };
const authorized = '44444444-4444-4444-8444-444444444444';

const gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '0', MAX_BODY_BYTES: '2000' });

const get = (parameters: string, headers: Texts = {}) =>
  fetch(`${gateway.origin}/graphql?${parameters}`, { headers: { ...preflight, ...headers } });

it('passes every audit of graphql-http, but for those that the published text overrules', async () => {
  const results = await auditServer({
    url: `${gateway.origin}/graphql`,
    fetchFn: (url: string, init: RequestInit = {}) =>
      fetch(url, { ...init, headers: { ...init.headers, ...preflight } }),
  });
  expect(results.length).toBeGreaterThan(50);
  const failed = results.flatMap((result) => (result.status === 'ok' ? [] : [result.id]));
  // Both ask for 400 where the text asks for 422: a request without a query, and variables that do not fit.
  expect(failed.sort()).toEqual(['423L', '86EE']);
});

describe('GraphQL over HTTP', () => {
  it.each<[string, RequestInit, number]>([
    ['a query', {}, 200],
    ['a form', { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'query={a}' }, 415],
    ['a body too large', { body: `{"query":"${' '.repeat(3000)}"}` }, 413],
    ['another method', { method: 'PUT' }, 405],
  ])('answers %s with its status, in GraphQL form', async (_, init, status) => {
    const response = await post(`${gateway.origin}/graphql`, { query: '{ __typename }' }, {}, init);
    const body = (await response.json()) as { errors?: unknown[] };
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store, no-transform');
    expect(response.headers.get('x-request-id')).toBeTruthy();
    expect(body.errors === undefined).toBe(status === 200);
  });

  const mutation = encodeURIComponent('mutation { createClientLink(input: {}) { replayed } }');
  it.each([
    ['a PUT', 'PUT', ''],
    ['a mutation by GET', 'GET', `?query=${mutation}`],
    ['a mutation by GET of events', 'GET', `/stream?query=${mutation}`],
  ])('executes nothing for %s, and names the methods of the path', async (_, method, search) => {
    const headers = { ...preflight, accept: 'application/json, text/event-stream' };
    const response = await fetch(`${gateway.origin}/graphql${search}`, { method, headers });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, POST']);
    expect(gateway.sandbox.requests('createClientLink')).toEqual([]);
  });

  it.each<[string, number]>([
    ['*/*', 400],
    ['application/json', 400],
    [responseJson, 422],
  ])('names what a request without a query lacks, to %s', async (accept, status) => {
    for (const body of [{}, { qeury: '{ __typename }' }, { query: null }, { query: '' }, { documentId: 'a' }]) {
      const message = 'documentId' in body ? /^This id is not that of a trusted/ : /^The request must have a query$/;
      const response = await post(`${gateway.origin}/graphql`, body, { accept });
      expect([response.status, await response.json()]).toMatchObject([
        status,
        { errors: [{ message: expect.stringMatching(message), extensions: { code: 'BAD_USER_INPUT' } }] },
      ]);
    }
  });

  it('takes a body whose Content-Encoding is identity, in any letters', async () => {
    const response = await post(
      `${gateway.origin}/graphql`,
      { query: '{ __typename }' },
      { 'content-encoding': 'IDENTITY' },
    );
    expect(response.status).toBe(200);
  });

  it('takes an empty parameter of a GET as one that is not given', async () => {
    const query = `query=${encodeURIComponent('{ __typename }')}`;
    for (const rest of ['variables=', 'extensions=', 'operationName=', 'documentId=', 'variables=&extensions=']) {
      const response = await get(`${query}&${rest}`);
      expect([rest, response.status, await response.json()]).toEqual([rest, 200, { data: { __typename: 'Query' } }]);
    }
    expect((await get('query=', { accept: responseJson })).status).toBe(422);
  });

  it('reads the variables of a GET as JSON, and a name of "null" as a name', async () => {
    const query = encodeURIComponent('query null($yes: Boolean!) { __typename @include(if: $yes) }');
    const variables = encodeURIComponent('{"yes":true}');
    const response = await get(`query=${query}&variables=${variables}&operationName=null`);
    expect(await response.json()).toEqual({ data: { __typename: 'Query' } });
    for (const [malformed, status] of Object.entries({ '{': 400, '[]': 422, '"a"': 422 })) {
      const refused = await get(`query=${query}&variables=${encodeURIComponent(malformed)}`, { accept: responseJson });
      expect([malformed, refused.status]).toEqual([malformed, status]);
    }
  });
});

describe.each(['by Apollo', 'by a plan'])('Executed %s, an answer', (way) => {
  let own: TestGateway;
  beforeAll(async () => {
    own = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '0' });
  });

  const token = (id: string) => `{ taxpayerToken(taxpayerId: "${id}") { status } }`;
  const withVariable = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
  const mutation = 'mutation { createClientLink(input: { metadata: { a: 1e400 } }) { replayed } }';

  // In each row: the status for the new media type, for those who take anything, and for those who name the old one only.
  it.each<[string, object | string, [number, number, number]]>([
    ['of data', { query: token(authorized) }, [200, 200, 200]],
    ['of data with errors', { query: token('nobody') }, [294, 200, 200]],
    ['of null with errors', { query: mutation }, [294, 200, 200]],
    ['to a document that cannot be parsed', { query: '{' }, [400, 400, 200]],
    ['to a document that is not valid', { query: '{ nothing }' }, [422, 400, 200]],
    ['to a document that is too large', { query: `{ ${'a: __typename '.repeat(80)} }` }, [422, 400, 200]],
    ['to a name of no operation', { query: 'query A { __typename }', operationName: 'B' }, [422, 400, 200]],
    ['to a variable of another type', { query: withVariable, variables: { id: {} } }, [422, 400, 200]],
    [
      'to an automatic persisted query',
      { extensions: { persistedQuery: { version: 1, sha256Hash: 'a' } } },
      [422, 200, 200],
    ],
    ['to a body that is no JSON', 'NONSENSE', [400, 400, 400]],
    ['to variables that are a list', { query: '{ __typename }', variables: [7] }, [422, 400, 400]],
    ['to a name that is a number', { query: '{ __typename }', operationName: 7 }, [422, 400, 400]],
    ['to a batch', [{ query: '{ __typename }' }], [422, 400, 400]],
  ])('%s has the status that its media type asks for', async (_, body, [published, usual, old]) => {
    const expected: [string, string, number][] = [
      [responseJson, responseJson, published],
      [`${responseJson}, application/json;q=0.9`, responseJson, published],
      [`application/json, ${responseJson};q=0.9`, 'application/json', usual],
      ['*/*', 'application/json', usual],
      ['application/json', 'application/json', old],
    ];
    for (const time of [1, 2, 3]) {
      for (const [accept, type, status] of expected) {
        // A text that was seen before has a plan.
        const isNew = way === 'by Apollo' && typeof body === 'object' && 'query' in body;
        const sent = isNew ? { ...body, query: newText(String(body.query)) } : body;
        const response = await post(`${own.origin}/graphql`, sent, { accept });
        const found = [time, accept, response.status, response.headers.get('content-type')];
        expect(found).toEqual([time, accept, status, `${type}; charset=utf-8`]);
        const answer = (await response.json()) as object;
        if (status === 294) expect(response.statusText).toBe('Partial Success');
        expect('data' in answer).toBe(published < 300);
        expect('errors' in answer).toBe(published !== 200);
      }
    }
  });
});
