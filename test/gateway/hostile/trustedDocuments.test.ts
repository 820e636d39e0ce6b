import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readListed } from '../../../src/operations/TrustedDocuments.js';
import { type Answer, post, startTestGateway, type Texts } from '../../support/gateway.js';
import { scratch } from '../../support/scratch.js';

const directory = scratch();
const listed = 'query Type {\n  __typename\n}';
const other = 'query Other { other: __typename }';
const id = createHash('sha256').update(listed).digest('hex');
const operations = [
  { id, name: 'Type', type: 'query', body: listed },
  { id: 'other', name: 'Other', type: 'query', body: other },
];
const manifest = { format: 'apollo-persisted-query-manifest', version: 1, operations };
const routerSecret = 'the-secret-of-the-router';

function write(name: string, content: unknown) {
  const file = join(directory, name);
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

const file = write('manifest.json', `\uFEFF${JSON.stringify(manifest)}`); // as some editors write it
const gateway = await startTestGateway({ TRUSTED_DOCUMENTS_FILE: file, FEDERATION_SHARED_SECRET: routerSecret });

async function send(body: object, headers: Texts = {}) {
  const response = await post(`${gateway.origin}/graphql`, body, headers);
  return { status: response.status, ...((await response.json()) as Pick<Answer<object>, 'data' | 'errors'>) };
}

describe('with TRUSTED_DOCUMENTS_FILE', () => {
  test.each<[string, object]>([
    ['its text', { query: listed }],
    ['its text in another layout', { query: '# a comment\nquery   Type{__typename}' }],
    ['its id, as Apollo’s clients send it', { extensions: { persistedQuery: { version: 1, sha256Hash: id } } }],
    ['its id as documentId', { documentId: id }],
    ['its id and an empty text, as a WebSocket needs it', { query: '', documentId: id }],
    ['its text and another id, which is not read', { query: listed, documentId: 'other' }],
    ['both', { query: listed, extensions: { persistedQuery: { version: 1, sha256Hash: id } } }],
  ])('a listed document runs when a request sends %s', async (_, body) => {
    expect(await send(body)).toEqual({ status: 200, data: { __typename: 'Query' } });
  });

  test('a listed document runs with more layout than text, but is not looked for in one of many kilobytes', async () => {
    expect(await send({ query: `#${'x'.repeat(19_000)}\n${listed}` })).toMatchObject({ status: 200 });
    expect(await send({ query: `#${'x'.repeat(21_000)}\n${listed}` })).toMatchObject({ status: 400 });
  });

  test('a listed document runs by its id over GET', async () => {
    const response = await fetch(`${gateway.origin}/graphql?documentId=${id}`, {
      headers: { 'apollo-require-preflight': 'yes' },
    });
    expect(await response.json()).toEqual({ data: { __typename: 'Query' } });
  });

  test.each<[string, object]>([
    ['a document that is not listed', { query: '{ __typename }' }],
    ['an id that is not listed', { documentId: 'nobody' }],
    [
      'automatic registration',
      { query: '{ __typename }', extensions: { persistedQuery: { version: 1, sha256Hash: 'x' } } },
    ],
    ['introspection', { query: '{ __schema { queryType { name } } }' }],
  ])('%s is refused in words that name the setting', async (_, body) => {
    const answer = await send(body);
    expect(answer).toMatchObject({
      status: 400,
      errors: [{ extensions: { code: 'BAD_USER_INPUT', retryable: false } }],
    });
    expect(answer.errors?.[0]?.message).toContain('TRUSTED_DOCUMENTS_FILE');
  });

  test('a router that presents its secret may send its own', async () => {
    const query = '{ __typename }';
    expect(await send({ query }, { 'x-gateway-router-secret': routerSecret })).toMatchObject({ status: 200 });
    expect(await send({ query }, { 'x-gateway-router-secret': 'a-secret-that-is-not-it' })).toMatchObject({
      status: 400,
    });
    expect(await send({}, { 'x-gateway-router-secret': routerSecret })).toMatchObject({
      status: 400,
      errors: [{ message: 'The request must have a query' }],
    });
  });

  test.each<[string, unknown, string]>([
    ['is not JSON', '{', 'TRUSTED_DOCUMENTS_FILE is not JSON'],
    ['holds an operation without a body', { ...manifest, operations: [{ id: 'a' }] }, '{ hash: text }'],
    [
      'gives an id to two documents',
      { ...manifest, operations: [...operations, { ...operations[0], body: other }] },
      'gives one id to two documents, see "',
    ],
    [
      'holds what is not GraphQL',
      { ...manifest, operations: [{ id: 'a\nb', body: '"' }] },
      'is not GraphQL, see "a\\nb"',
    ],
    ['is a map with something else than a text', { hash: other, more: [] }, '{ hash: text }'],
  ])('a file that %s is refused in one line that names it', async (_, content, words) => {
    const file = write('bad.json', content);
    const problem = await readListed([write('good.json', manifest), file]).catch(({ message }) => message);
    expect(problem).toContain(words);
    expect(problem).toMatch(/^TRUSTED_DOCUMENTS_FILE .*\/bad\.json$/);
  });

  test('a folder without a list is refused in one line', async () => {
    mkdirSync(join(directory, 'empty'));
    writeFileSync(join(directory, 'empty', 'readme.txt'), 'not a list');
    await expect(readListed([join(directory, 'empty')])).rejects.toThrow(
      /^TRUSTED_DOCUMENTS_FILE is a folder without a \.json file: .*\/empty$/,
    );
  });
});
