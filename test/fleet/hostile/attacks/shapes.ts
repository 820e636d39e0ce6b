import { type Attack, post, type Scene } from './Attack.js';

const invalid = { status: 400, code: 'GRAPHQL_VALIDATION_FAILED' } as const;
const badInput = { status: 400, code: 'BAD_USER_INPUT' } as const;

/** How much: documents and variables that cost more than they should. */
export async function documentAttacks({ token, own }: Scene): Promise<Attack[]> {
  const authorization = `Bearer ${await token()}`;
  const times = (count: number, text: (index: number) => string) =>
    Array.from({ length: count }, (_, i) => text(i)).join(' ');
  const bomb = (levels: number, selection: string, inner: string) =>
    `{ ...F0 } ${times(levels, (i) => `fragment F${i} on Query { ${selection.replaceAll('NEXT', `F${i + 1}`)} }`)} fragment F${levels} on Query { ${inner} }`;
  const documents: Readonly<Record<string, string>> = {
    'fields nested 100 deep': `{ taxpayer(id: "${own}") ${'{ token { taxpayer '.repeat(50)} { id } ${'} }'.repeat(50)} }`,
    'fields nested 900 deep': `${'{ a '.repeat(900)}${'}'.repeat(900)}`,
    '61 aliases': `{ ${times(61, (i) => `a${i}: __typename`)} }`,
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
  return [
    ...Object.entries(documents).map(([name, query]) => ({ name, ...post(authorization, query), ...invalid })),
    { name: 'a syntax error', ...post(authorization, '{ taxpayer('), status: 400, code: 'GRAPHQL_PARSE_FAILED' },
    {
      name: 'a document that is all quotes',
      ...post(authorization, '"'.repeat(999)),
      status: 400,
      code: 'GRAPHQL_PARSE_FAILED',
    },
    ...(await variableAttacks(authorization)),
  ];
}

async function variableAttacks(authorization: string): Promise<Attack[]> {
  const create = 'mutation($i: CreateClientLinkInput!) { createClientLink(input: $i) { replayed } }';
  const nested = (levels: number, open: string, close: string) => `${open.repeat(levels)}1${close.repeat(levels)}`;
  const withText = (query: string, variables: string) => ({
    headers: { 'content-type': 'application/json', authorization },
    body: `{"query":${JSON.stringify(query)},"variables":${variables}}`,
  });
  return [
    {
      name: 'metadata nested 100,000 deep in lists',
      ...withText(create, `{"i":{"metadata":{"a":${nested(100_000, '[', ']')}}}}`),
      ...badInput,
    },
    {
      name: 'metadata nested one level too deep',
      ...withText(create, `{"i":{"metadata":${nested(21, '{"a":', '}')}}}`),
      status: 200,
      code: 'BAD_USER_INPUT',
    },
    {
      name: 'metadata in the document nested too deep',
      ...post(
        authorization,
        `mutation { createClientLink(input: { metadata: ${nested(200, '{ a: ', '}')} }) { replayed } }`,
      ),
      status: 200,
      code: 'BAD_USER_INPUT',
    },
    {
      name: 'a variable nested 100,000 deep where a text belongs',
      ...withText('query($id: ID!) { taxpayer(id: $id) { id } }', `{"id":${nested(100_000, '[', ']')}}`),
      ...badInput,
    },
    {
      name: 'a variable nobody declared, 100,000 deep',
      ...withText('{ __typename }', `{"x":${nested(100_000, '[', ']')}}`),
      ...badInput,
    },
    {
      name: 'extensions nested 100,000 deep',
      headers: { 'content-type': 'application/json', authorization },
      body: `{"query":"{ __typename }","extensions":{"x":${nested(100_000, '[', ']')}}}`,
      ...badInput,
    },
    {
      name: 'a variable of a wrong type',
      ...withText('query($id: ID!) { taxpayer(id: $id) { id } }', '{"id":{"a":1}}'),
      ...badInput,
    },
    {
      name: 'a variable that is missing',
      ...withText('query($id: ID!) { taxpayer(id: $id) { id } }', '{}'),
      ...badInput,
    },
    {
      name: 'a variable given by its prototype',
      ...withText('query($id: ID!) { taxpayer(id: $id) { id } }', '{"__proto__":{"id":"x"}}'),
      ...badInput,
    },
    { name: 'an input field called __proto__', ...withText(create, '{"i":{"__proto__":{"admin":true}}}'), ...badInput },
    { name: 'an input field nobody knows', ...withText(create, '{"i":{"ssn":"123-45-6789"}}'), ...badInput },
    {
      name: 'a wait of a year',
      ...post(
        authorization,
        '{ refreshJob(taxpayerId: "own-taxpayer", jobId: "j", waitSeconds: 31536000) { status } }',
      ),
      status: 200,
      code: 'BAD_USER_INPUT',
    },
    {
      name: 'an idempotency key of 10,000 characters',
      ...withText(create, `{"i":{"idempotencyKey":"${'k'.repeat(10_000)}"}}`),
      status: 200,
      code: 'BAD_USER_INPUT',
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
  const unsupported = { status: 415, code: 'BAD_USER_INPUT' } as const;
  const host = 'Host: x\r\nConnection: close\r\n';
  return [
    ...Object.entries(bodies).map(([name, body]) => ({ name, headers: json, body, ...badInput })),
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
    {
      name: 'a body that is too large',
      headers: json,
      body: Buffer.alloc(300_000, 'x'),
      status: 413,
      code: 'BAD_USER_INPUT',
    },
    {
      name: 'a body that is too large and of unknown length',
      headers: { ...json, 'transfer-encoding': 'chunked' },
      body: Buffer.alloc(300_000, 'x'),
      status: 413,
      code: 'BAD_USER_INPUT',
    },
    {
      name: 'an answer type we do not write',
      headers: { ...json, accept: 'text/html' },
      body: simple,
      status: 406,
      code: 'BAD_USER_INPUT',
    },
    { name: 'a mutation by GET', ...get, path: `/graphql?query=${mutation}`, status: 405, code: 'BAD_USER_INPUT' },
    {
      name: 'a GET that a page of another origin can send',
      method: 'GET',
      path: '/graphql?query={__typename}',
      headers: { authorization },
      ...badInput,
    },
    { name: 'a GET with two queries', ...get, path: '/graphql?query={__typename}&query={__typename}', ...badInput },
    {
      name: 'a GET with variables that are not JSON',
      ...get,
      path: '/graphql?query={__typename}&variables={',
      ...badInput,
    },
    { name: 'a GET in malformed UTF-8', ...get, path: '/graphql?query={__typename}%23%c3%28', ...badInput },
    { name: 'a GET without a query', ...get, path: '/graphql', ...badInput },
    ...['PUT', 'TRACE'].map((method) => ({
      name: `a ${method}`,
      method,
      headers: json,
      status: 405,
      code: 'BAD_USER_INPUT',
    })),
    ...['//graphql', '/graphql/../metrics', '/%67raphql'].map((path) => ({
      name: `the path ${path}`,
      path,
      headers: json,
      body: simple,
      status: 404,
      code: undefined,
    })),
    { name: 'the explorer in production', method: 'GET', path: '/graphiql', status: 404, code: undefined },
    { name: 'a request that is not HTTP', raw: 'nonsense\r\n\r\n', status: 400, code: undefined },
    {
      name: 'two lengths of one body',
      raw: `POST /graphql HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
      status: 400,
      code: undefined,
    },
    {
      name: 'a length and chunks',
      raw: `POST /graphql HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      status: 400,
      code: undefined,
    },
    {
      name: 'a NUL in a header',
      raw: `POST /graphql HTTP/1.1\r\n${host}X-Request-Id: a\u0000b\r\n\r\n`,
      status: 400,
      code: undefined,
    },
    {
      name: 'a request without a host',
      raw: 'GET /graphql HTTP/1.1\r\nConnection: close\r\n\r\n',
      status: 400,
      code: undefined,
    },
    {
      name: '3,000 headers',
      raw: `GET /graphql HTTP/1.1\r\n${host}${'a: bcdef\r\n'.repeat(3000)}\r\n`,
      status: 431,
      code: undefined,
    },
    {
      // Apollo's clients take this answer, with status 200, as "send the text instead"
      name: 'a persisted query nobody registered',
      headers: json,
      body: '{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"00"}}}',
      status: 200,
      code: 'BAD_USER_INPUT',
    },
  ];
}
