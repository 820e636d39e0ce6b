import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { loadConfig } from '../src/config.js';
import { type Gateway, startGateway } from '../src/server.js';
import { startTestGateway, type TestGateway } from './support/gateway.js';
import { type IdentityProvider, startIdentityProvider } from './support/identityProvider.js';

// Whatever Apollo answers, a plan answers byte for byte; and what a plan could get wrong stays with Apollo.

interface Row {
  readonly query: string;
  readonly variables?: object | ((time: number) => object);
  readonly operationName?: string;
  /** Who executes it from the second time on. */
  readonly way: 'plan' | 'apollo';
}

let planned: TestGateway;
let interpreted: Gateway;
let provider: IdentityProvider;
let authorization: string;
let ids: string[] = [];
let jobs: { taxpayerId: string; jobId: string }[] = [];
const foreign = 'somebody-else';

beforeAll(async () => {
  provider = await startIdentityProvider();
  const env = {
    AUTH_MODE: 'jwt',
    AUTH_JWKS_URL: provider.jwksUrl,
    AUTH_ISSUER: provider.issuer,
    AUTH_AUDIENCE: provider.audience,
    MAX_ALIASES: '20',
  };
  planned = await startTestGateway(env, { jobDurationMs: 3_600_000 }, 'on');
  const { url, clientId, clientSecret, control } = planned.sandbox;
  ids = control.addTaxpayers(80, {
    name: 'Same Name',
    createdAt: '2024-02-03T04:05:06.000Z',
    metadata: { a: [1, { b: null }] },
  });
  jobs = ids.map((taxpayerId) => ({ taxpayerId, jobId: control.addJob({ taxpayerId, name: 'same job' }).jobId }));
  interpreted = await startGateway(
    loadConfig({
      ...env,
      PORT: '0',
      HOST: '127.0.0.1',
      CACHE_URL: 'memory:',
      UPSTREAM_BASE_URL: url,
      UPSTREAM_CLIENT_ID: clientId,
      UPSTREAM_CLIENT_SECRET: clientSecret,
    }),
    { plans: 'off', logDestination: { write: () => {} } },
  );
  const missing = ['missing', 'missing-1', 'missing-2', 'missing-3', 'missing-4'];
  authorization = `Bearer ${await provider.token({ scope: 'taxpayers:read refresh-jobs:read', taxpayer_ids: [...ids, ...missing] })}`;
});

afterAll(async () => {
  await interpreted.stop();
  await planned.stop();
  await provider.stop();
});

/** The whole answer: status, headers but the date, and the body to the byte; moments of reading are left out. */
async function answerOf(port: number, { query, operationName }: Row, variables: object | undefined, accept?: string) {
  const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization,
      'x-request-id': 'the-same',
      ...(accept && { accept }),
    },
    body: JSON.stringify({ query, variables, operationName }),
  });
  const headers = [...response.headers].filter(([name]) => name !== 'date');
  const text = (await response.text()).replace(/("(?:fetchedAt|observedAt)":)"[^"]+"/g, '$1"…"');
  return { status: response.status, headers, text };
}

async function executions(way: 'plan' | 'apollo'): Promise<number> {
  const text = await (await fetch(`${planned.origin}/metrics`)).text();
  return Number(new RegExp(`gateway_executions_total\\{way="${way}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
}

const token = 'name status provider providerId createdAt metadata stale';

const rows = (): Record<string, Row> => ({
  'a typename': { query: '{ __typename }', way: 'plan' },
  'a literal argument': { query: `{ taxpayerToken(taxpayerId: "${ids[0]}") { ${token} fetchedAt } }`, way: 'plan' },
  'a variable': {
    query: `query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { taxpayerId ${token} } }`,
    variables: { id: ids[0] },
    way: 'plan',
  },
  'a record that has to be fetched': {
    query: `query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { ${token} } }`,
    variables: (time) => ({ id: ids[10 + time] }),
    way: 'plan',
  },
  'a job that has to be fetched': {
    query: 'query Q($t: ID!, $j: ID!) { refreshJob(taxpayerId: $t, jobId: $j) { name status observedAt __typename } }',
    variables: (time) => ({ t: jobs[20 + time]?.taxpayerId, j: jobs[20 + time]?.jobId }),
    way: 'plan',
  },
  'aliases, some fetched and some not there': {
    query: `query Q($a: ID!, $b: ID!, $c: ID!) {
      first: taxpayerToken(taxpayerId: $a) { name }
      second: taxpayerToken(taxpayerId: $b) { name status }
      third: taxpayerToken(taxpayerId: $c) { name }
      fourth: taxpayerToken(taxpayerId: "..") { name }
    }`,
    variables: (time) => ({ a: ids[30 + time], b: `missing-${time}`, c: foreign }),
    way: 'plan',
  },
  'nested objects': {
    query: `query Q($t: ID!, $j: ID!) {
      taxpayer(id: $t) { id token { name taxpayer { id refreshJob(jobId: $j) { name taxpayer { token { status } } } } } }
    }`,
    variables: (time) => ({ t: jobs[40 + time]?.taxpayerId, j: jobs[40 + time]?.jobId }),
    way: 'plan',
  },
  'an error below the root': {
    query: `{ taxpayer(id: "${ids[0]}") { id token { accessToken name } refreshJob(jobId: "none") { name } } }`,
    way: 'plan',
  },
  'named fragments': {
    query: `query Q($id: ID!) { taxpayer(id: $id) { ...T } a: taxpayer(id: $id) { ...T id } }
      fragment T on Taxpayer { token { ...R } } fragment R on TaxpayerToken { status name }`,
    variables: { id: ids[0] },
    way: 'plan',
  },
  'inline fragments and merged fields': {
    query: `{ taxpayerToken(taxpayerId: "${ids[0]}") { name } ... on Query { taxpayerToken(taxpayerId: "${ids[0]}") { status ... { stale } } } }`,
    way: 'plan',
  },
  'a default that is used': {
    query: `query Q($age: Int = 100, $id: ID = "${ids[0]}") { taxpayerToken(taxpayerId: $id, maxAgeSeconds: $age) { name } }`,
    way: 'plan',
  },
  'a default that is not used': {
    query: `query Q($age: Int = -1) { taxpayerToken(taxpayerId: "${ids[0]}", maxAgeSeconds: $age) { name } }`,
    variables: { age: 600 },
    way: 'plan',
  },
  'a default that is malformed for the resolver': {
    query: `query Q($age: Int = -1) { taxpayerToken(taxpayerId: "${ids[0]}", maxAgeSeconds: $age) { name } }`,
    way: 'plan',
  },
  'an explicit null': {
    query: `query Q($age: Int) { taxpayerToken(taxpayerId: "${ids[0]}", maxAgeSeconds: $age) { name } }`,
    variables: { age: null },
    way: 'plan',
  },
  'a null where a default would do, for an argument that needs a value': {
    query: `query Q($id: ID = "${ids[0]}") { taxpayerToken(taxpayerId: $id) { name } }`,
    variables: { id: null },
    way: 'apollo',
  },
  'a null literal': { query: `{ taxpayerToken(taxpayerId: "${ids[0]}", maxAgeSeconds: null) { name } }`, way: 'plan' },
  'an absent variable': {
    query: `query Q($age: Int) { taxpayerToken(taxpayerId: "${ids[0]}", maxAgeSeconds: $age) { name } }`,
    way: 'plan',
  },
  'one of two operations': {
    query: `query A { __typename } query B { a: taxpayer(id: "${ids[0]}") { id } }`,
    operationName: 'B',
    way: 'plan',
  },
  'texts that have to be escaped': {
    query: `{ a: taxpayer(id: "quote\\" \\u2028 \${x} \`") { id } b: taxpayer(id: """block "x" """) { id } }`,
    way: 'plan',
  },
  'names of the prototype': {
    query: `query Q($constructor: ID!) { toString: taxpayer(id: $constructor) { hasOwnProperty: id valueOf: __typename } }`,
    variables: { constructor: ids[0] },
    way: 'plan',
  },
  'fields that only generated code would mix up': {
    query: `{ a_token: taxpayer(id: "${ids[0]}") { id } a: taxpayer(id: "${ids[1]}") { token { name } } }`,
    way: 'plan',
  },

  'no operation name where there are two': { query: 'query A { __typename } query B { __typename }', way: 'apollo' },
  'a number for an id': {
    query: 'query Q($id: ID!) { taxpayer(id: $id) { id } }',
    variables: { id: 5 },
    way: 'apollo',
  },
  'a variable that is missing': { query: 'query Q($id: ID!) { taxpayer(id: $id) { id } }', way: 'apollo' },
  'a variable of another type': {
    query: 'query Q($id: ID!) { taxpayer(id: $id) { id } }',
    variables: { id: ['x'] },
    way: 'apollo',
  },
  'an integer out of range': {
    query: `query Q($age: Int) { taxpayerToken(taxpayerId: "${ids[0]}", maxAgeSeconds: $age) { name } }`,
    variables: { age: 3e9 },
    way: 'apollo',
  },
  directives: {
    query: `query Q($yes: Boolean!) { a: __typename @include(if: $yes) b: __typename @skip(if: $yes) }`,
    variables: { yes: true },
    way: 'apollo',
  },
  'a name that is a prototype': { query: '{ __proto__: __typename }', way: 'apollo' },
  introspection: { query: '{ __schema { queryType { name } } }', way: 'apollo' },
  entities: {
    query: 'query Q($r: [_Any!]!) { _entities(representations: $r) { ... on Taxpayer { id } } }',
    variables: { r: [{ __typename: 'Taxpayer', id: ids[0] }] },
    way: 'apollo',
  },
  'a mutation': { query: 'mutation { createClientLink(input: {}) { replayed } }', way: 'apollo' },
  'a document that is not valid': { query: '{ nothing }', way: 'apollo' },
  'a document that does not parse': { query: '{', way: 'apollo' },
});

const names = Object.keys(rows());

describe('an answer of a plan', () => {
  it.each(names)('is the same as Apollo gives, each time: %s', async (name) => {
    const row = rows()[name] as Row;
    const of = (time: number) => (typeof row.variables === 'function' ? row.variables(time) : row.variables);
    for (const accept of [undefined, 'application/graphql-response+json']) {
      const before = await executions(row.way);
      const port = planned.gateway.port;
      // At the fourth time, with variables of its own, both gateways meet a taxpayer that neither has asked for.
      const answers = [];
      for (const time of [1, 2, 3, 4]) answers.push(await answerOf(port, row, of(time), accept));
      const expected = [];
      for (const time of [1, 2, 3, 4]) expected.push(await answerOf(interpreted.port, row, of(time), accept));
      expect(answers).toEqual(expected);
      expect((await executions(row.way)) - before).toBeGreaterThanOrEqual(row.way === 'plan' ? 3 : 4);
    }
  });

  it('is refused as Apollo refuses once the caller may not ask any more', async () => {
    const row = rows()['a variable'] as Row;
    for (const caller of [authorization, `Bearer ${await provider.token({ scope: '', taxpayer_ids: ids })}`]) {
      const ask = (port: number) =>
        fetch(`http://127.0.0.1:${port}/graphql`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: caller, 'x-request-id': 'the-same' },
          body: JSON.stringify(row),
        }).then((response) => response.text());
      expect(await ask(planned.gateway.port)).toBe(await ask(interpreted.port));
    }
  });
});
