import { times } from '../../../support/times.js';
import { type Attack, type Scene, unread, withDocument } from './Attack.js';

const invalid = { status: 400, code: 'GRAPHQL_VALIDATION_FAILED' } as const;
const badInput = { status: 400, code: 'BAD_USER_INPUT' } as const;

/** That many texts, such as fields or fragments. */
const repeated = (count: number, text: (index: number) => string) => times(count, text).join(' ');

/** How much: documents and variables that cost more than they should. */
export async function documentAttacks({ token, own }: Scene): Promise<Attack[]> {
  const authorization = `Bearer ${await token()}`;
  const bomb = (levels: number, selection: string, inner: string) =>
    `{ ...F0 } ${repeated(levels, (i) => `fragment F${i} on Query { ${selection.replaceAll('NEXT', `F${i + 1}`)} }`)} fragment F${levels} on Query { ${inner} }`;
  const documents: Readonly<Record<string, string>> = {
    'fields nested 100 deep': `{ taxpayer(id: "${own}") ${'{ token { taxpayer '.repeat(50)} { id } ${'} }'.repeat(50)} }`,
    'fields nested 900 deep': `${'{ a '.repeat(900)}${'}'.repeat(900)}`,
    '61 aliases': `{ ${repeated(61, (i) => `a${i}: __typename`)} }`,
    'aliases hidden in a spread bomb': bomb(12, '...NEXT ...NEXT', 'a: __typename b: __typename'),
    'root fields hidden in a spread bomb': bomb(20, '...NEXT ... on Query { ...NEXT }', '__typename'),
    'directives hidden in a spread bomb': bomb(8, '...NEXT @include(if: true) ...NEXT @skip(if: false)', '__typename'),
    '2,001 tokens': `{ ${'__typename '.repeat(2001)} }`,
    '40,000 tokens': `{ ${'a '.repeat(40_000)} }`,
    'fragments that spread each other': '{ ...F } fragment F on Query { ...G } fragment G on Query { ...F }',
    'fields to be compared pair by pair': `{ taxpayer(id: "${own}") { ${'token { name } '.repeat(480)} } }`,
    'deep fields to be compared pair by pair': `{ taxpayer(id: "${own}") { ${`token { ${'taxpayer { id } '.repeat(15)} } `.repeat(30)} } }`,
    'introspection hidden in a fragment': '{ ...F } fragment F on Query { x: __schema { queryType { name } } }',
    'introspection that goes in circles': `{ __schema { types ${'{ fields { type '.repeat(20)} { name } ${'} }'.repeat(20)} } }`,
    'a field that does not exist': '{ taxpayerTokn { name } }',
    'an unknown directive': '{ __typename @export(as: "x") }',
    'a type definition': 'type Query { admin: Boolean }',
  };
  const parsed = { status: 400, code: 'GRAPHQL_PARSE_FAILED' } as const;
  return [
    ...Object.entries(documents).map(([name, query]) => ({ name, ...withDocument(authorization, query), ...invalid })),
    { name: 'a syntax error', ...withDocument(authorization, '{ taxpayer('), ...parsed },
    { name: 'a document that is all quotes', ...withDocument(authorization, '"'.repeat(999)), ...parsed },
    ...variableAttacks(authorization),
  ];
}

function variableAttacks(authorization: string): Attack[] {
  const headers = { 'content-type': 'application/json', authorization };
  const create = 'mutation($i: CreateClientLinkInput!) { createClientLink(input: $i) { replayed } }';
  const read = 'query($id: ID!) { taxpayer(id: $id) { id } }';
  const nested = (levels: number, open: string, close: string) => `${open.repeat(levels)}1${close.repeat(levels)}`;
  const deep = nested(100_000, '[', ']');
  /** Each with its document, and the variables as text. */
  const variables: Readonly<Record<string, readonly [query: string, variables: string]>> = {
    'metadata nested 100,000 deep in lists': [create, `{"i":{"metadata":{"a":${deep}}}}`],
    'a variable nested 100,000 deep where a text belongs': [read, `{"id":${deep}}`],
    'a variable nobody declared, 100,000 deep': ['{ __typename }', `{"x":${deep}}`],
    'a variable of a wrong type': [read, '{"id":{"a":1}}'],
    'a variable that is missing': [read, '{}'],
    'a variable given by its prototype': [read, '{"__proto__":{"id":"x"}}'],
    'an input field called __proto__': [create, '{"i":{"__proto__":{"admin":true}}}'],
    'an input field nobody knows': [create, '{"i":{"ssn":"123-45-6789"}}'],
  };
  /** Refused by the field, when the rest is executed. */
  const ofFields: typeof variables = {
    'metadata nested one level too deep': [create, `{"i":{"metadata":${nested(21, '{"a":', '}')}}}`],
    'metadata in the document nested too deep': [
      `mutation { createClientLink(input: { metadata: ${nested(200, '{ a: ', '}')} }) { replayed } }`,
      '{}',
    ],
    'a wait of a year': [
      '{ refreshJob(taxpayerId: "own-taxpayer", jobId: "j", waitSeconds: 31536000) { status } }',
      '{}',
    ],
    'an idempotency key of 10,000 characters': [create, `{"i":{"idempotencyKey":"${'k'.repeat(10_000)}"}}`],
  };
  const attacksOf = (table: typeof variables, outcome: Pick<Attack, 'status' | 'code'>) =>
    Object.entries(table).map(([name, [query, text]]) => {
      return { name, headers, body: `{"query":${JSON.stringify(query)},"variables":${text}}`, ...outcome };
    });
  return [
    ...attacksOf(variables, badInput),
    ...attacksOf(ofFields, { ...badInput, status: 200 }),
    {
      name: 'extensions nested 100,000 deep',
      headers,
      body: `{"query":"{ __typename }","extensions":{"x":${deep}}}`,
      ...badInput,
    },
  ];
}

/** How: what is wrong before GraphQL begins. */
export async function transportAttacks({ token }: Scene): Promise<Attack[]> {
  const authorization = `Bearer ${await token()}`;
  const json = { 'content-type': 'application/json', authorization };
  const simple = '{"query":"{ __typename }"}';
  const mutation = encodeURIComponent('mutation { createClientLink(input: {}) { replayed } }');
  const get = { method: 'GET', headers: { authorization, 'apollo-require-preflight': 'yes' } } as const;
  const bodies: Readonly<Record<string, string | Buffer>> = {
    'a body that is not JSON': '{"query":',
    'a body that is JavaScript': "{query:'{ __typename }'}",
    'an empty body': '',
    'malformed UTF-8': Buffer.concat([
      Buffer.from('{"query":"{ __typename } #'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"}'),
    ]),
    'a body in UTF-16': Buffer.from(simple, 'utf16le'),
    'a batch': `[${simple},${simple}]`,
    'a body that is null': 'null',
    'a query that is a list': '{"query":["{ __typename }"]}',
    'variables that are a list': '{"query":"{ __typename }","variables":[1]}',
    'extensions that are a text': '{"query":"{ __typename }","extensions":"x"}',
    'an operation name that is a number': '{"query":"{ __typename }","operationName":1}',
    'an operation that is not there': '{"query":"query A { __typename }","operationName":"B"}',
    'a query given by the prototype': '{"__proto__":{"query":"{ __typename }"}}',
    'a body nested 100,000 deep': `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
  };
  const unsupported = { ...badInput, status: 415 };
  const tooLarge = { body: Buffer.alloc(300_000, 'x'), ...badInput, status: 413 };
  const noMethod = { ...badInput, status: 405 };
  const host = 'Host: x\r\nConnection: close\r\n';
  const queries: Readonly<Record<string, string>> = {
    'a GET with two queries': '?query={__typename}&query={__typename}',
    'a GET with variables that are not JSON': '?query={__typename}&variables={',
    'a GET in malformed UTF-8': '?query={__typename}%23%c3%28',
    'a GET without a query': '',
  };
  /** Bytes that are not HTTP, or two readings of it. */
  const raws: Readonly<Record<string, string>> = {
    'a request that is not HTTP': 'nonsense\r\n\r\n',
    'two lengths of one body': `POST /graphql HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
    'a length and chunks': `POST /graphql HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'a NUL in a header': `POST /graphql HTTP/1.1\r\n${host}X-Request-Id: a\u0000b\r\n\r\n`,
    'a request without a host': 'GET /graphql HTTP/1.1\r\nConnection: close\r\n\r\n',
  };
  return [
    ...Object.entries(bodies).map(([name, body]) => ({ name, headers: json, body, ...badInput })),
    ...Object.entries(queries).map(([name, query]) => ({ name, ...get, path: `/graphql${query}`, ...badInput })),
    ...Object.entries(raws).map(([name, raw]) => ({ name, raw, ...unread(400) })),
    {
      name: 'a form',
      headers: { ...json, 'content-type': 'application/x-www-form-urlencoded' },
      body: `query=${mutation}`,
      ...unsupported,
    },
    {
      name: 'plain text, as a page of another origin can send',
      headers: { ...json, 'content-type': 'text/plain' },
      body: simple,
      ...unsupported,
    },
    { name: 'no content type', headers: { authorization }, body: simple, ...unsupported },
    {
      name: 'a compressed body',
      headers: { ...json, 'content-encoding': 'gzip' },
      body: Buffer.from([0x1f, 0x8b, 8, 0]),
      ...unsupported,
    },
    { name: 'a body that is too large', headers: json, ...tooLarge },
    {
      name: 'a body that is too large and of unknown length',
      headers: { ...json, 'transfer-encoding': 'chunked' },
      ...tooLarge,
    },
    {
      name: 'an answer type we do not write',
      headers: { ...json, accept: 'text/html' },
      body: simple,
      ...badInput,
      status: 406,
    },
    { name: 'a mutation by GET', ...get, path: `/graphql?query=${mutation}`, ...noMethod },
    {
      name: 'a GET that a page of another origin can send',
      method: 'GET',
      path: '/graphql?query={__typename}',
      headers: { authorization },
      ...badInput,
    },
    ...['PUT', 'TRACE'].map((method) => ({ name: `a ${method}`, method, headers: json, ...noMethod })),
    ...['//graphql', '/graphql/../metrics', '/%67raphql'].map((path) => ({
      name: `the path ${path}`,
      path,
      headers: json,
      body: simple,
      ...unread(404),
    })),
    { name: 'the explorer in production', method: 'GET', path: '/graphiql', ...unread(404) },
    {
      name: '3,000 headers',
      raw: `GET /graphql HTTP/1.1\r\n${host}${'a: bcdef\r\n'.repeat(3000)}\r\n`,
      ...unread(431),
    },
    {
      // Apollo's clients take this answer, with status 200, as "send the text instead"
      name: 'a persisted query nobody registered',
      headers: json,
      body: '{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"00"}}}',
      ...badInput,
      status: 200,
    },
  ];
}
