import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { auditServer } from 'graphql-http';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '0', MAX_BODY_BYTES: '2000' });
});
afterAll(() => gateway.stop());

const json = { 'content-type': 'application/json' };
const responseJson = 'application/graphql-response+json';

describe('GraphQL over HTTP', () => {
  it('passes every audit of graphql-http', async () => {
    const results = await auditServer({
      url: `${gateway.origin}/graphql`,
      fetchFn: (url: string, init: RequestInit = {}) =>
        fetch(url, { ...init, headers: { ...init.headers, 'apollo-require-preflight': 'true' } }),
    });
    const failed = results.flatMap((result) => (result.status === 'ok' ? [] : [`${result.name}: ${result.reason}`]));
    expect(failed.filter((name) => !name.startsWith('MAY'))).toEqual([]);
    expect(results.length).toBeGreaterThan(50);
    // MAY is what a server is free to do: ours answers parameters of a wrong type with 400 in every media type.
    expect(failed.filter((name) => name.startsWith('MAY'))).toEqual([]);
  });

  it.each<[string, RequestInit & { path?: string }, number]>([
    ['a query', { method: 'POST', headers: json, body: '{"query":"{__typename}"}' }, 200],
    ['a query by GET', { path: '?query={__typename}', headers: { 'apollo-require-preflight': '1' } }, 200],
    ['a GET that any page could send', { path: '?query={__typename}' }, 400],
    ['a mutation by GET', { path: '?query=mutation{__typename}', headers: { 'apollo-require-preflight': '1' } }, 405],
    [
      'a form',
      { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'query={a}' },
      415,
    ],
    ['text', { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{"query":"{__typename}"}' }, 415],
    ['no content type', { method: 'POST', body: new Uint8Array([123, 125]) }, 415],
    ['a compressed body', { method: 'POST', headers: { ...json, 'content-encoding': 'gzip' }, body: 'x' }, 415],
    [
      'a media type that is not offered',
      { method: 'POST', headers: { ...json, accept: 'text/html' }, body: '{}' },
      406,
    ],
    ['a body too large', { method: 'POST', headers: json, body: `{"query":"${' '.repeat(3000)}"}` }, 413],
    [
      'a body too large of unknown length',
      { method: 'POST', headers: json, body: stream('x'.repeat(3000)), duplex: 'half' } as never,
      413,
    ],
    ['no JSON', { method: 'POST', headers: json, body: '{' }, 400],
    ['bytes that are not UTF-8', { method: 'POST', headers: json, body: new Uint8Array([34, 255, 34]) }, 400],
    ['a batch', { method: 'POST', headers: json, body: '[{"query":"{__typename}"}]' }, 400],
    ['no query', { method: 'POST', headers: json, body: '{}' }, 400],
    ['an empty query', { method: 'POST', headers: json, body: '{"query":""}' }, 400],
    ['another method', { method: 'PUT', headers: json, body: '{"query":"{__typename}"}' }, 405],
    ['another method, DELETE', { method: 'DELETE' }, 405],
  ])('answers %s with its status, in GraphQL form', async (_, { path = '', ...init }, status) => {
    const response = await fetch(`${gateway.origin}/graphql${path}`, init);
    const body = (await response.json()) as { errors?: unknown[] };
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toMatch(/^application\/json; charset=utf-8$/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-request-id')).toBeTruthy();
    expect(body.errors === undefined).toBe(status === 200);
    if (status === 405) expect(response.headers.get('allow')).toBe(path === '' ? 'GET, POST' : 'POST');
  });

  it.each(['*/*', 'application/json', responseJson])(
    'names what a request without a query lacks, to %s',
    async (accept) => {
      const send = (body: object) =>
        fetch(`${gateway.origin}/graphql`, {
          method: 'POST',
          headers: { ...json, accept },
          body: JSON.stringify(body),
        });
      for (const body of [{}, { qeury: '{ __typename }' }, { query: null }, { query: '' }, { documentId: 'a' }]) {
        const response = await send(body);
        expect([response.status, await response.json()]).toMatchObject([
          400,
          { errors: [{ message: 'The request must have a query', extensions: { code: 'BAD_USER_INPUT' } }] },
        ]);
      }
    },
  );

  it('gives refused documents another status than failed fields, for clients that accept the new media type', async () => {
    const ask = async (query: string, accept: string) => {
      const body = JSON.stringify({ query });
      const response = await fetch(`${gateway.origin}/graphql`, { method: 'POST', headers: { ...json, accept }, body });
      return {
        status: response.status,
        type: response.headers.get('content-type'),
        ...((await response.json()) as object),
      };
    };
    const refused = await ask('{ nothing }', responseJson);
    expect(refused).toMatchObject({ status: 400, type: `${responseJson}; charset=utf-8` });
    expect(refused).not.toHaveProperty('data');
    expect(await ask('{ nothing }', 'application/json')).toMatchObject({ status: 200 });
    expect(await ask('{ taxpayerToken(taxpayerId: "nobody") { name } }', responseJson)).toMatchObject({
      status: 200,
      data: { taxpayerToken: null },
      errors: [{ extensions: { code: 'NOT_FOUND' } }],
    });
  });
});

function stream(text: string): ReadableStream {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });
}
