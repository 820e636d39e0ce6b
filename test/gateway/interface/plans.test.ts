import { jest } from '@jest/globals';
import { isNonNullType, isObjectType } from 'graphql';
import { LRUCache } from 'lru-cache';
import { startBoth } from '../../support/comparePlans.js';
import { schema } from '../../support/schema.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

// A plan's answer equals Apollo's byte for byte; operations that a plan could get wrong stay with Apollo. Queries of every form are
// generated in generatedQueries.test.ts; here is what they do not have.

interface Row {
  readonly query: string | ((time: number) => string);
  readonly variables?: object | ((time: number) => object);
  readonly operationName?: string;
  /** What executes it from the second time on. */
  readonly way: 'plan' | 'apollo' | 'nothing';
}

const both = await startBoth({ MAX_ALIASES: '20' }, { answerBytes: 30_000 });
const { sandbox } = both;
const ids = sandbox.addTaxpayers(80, {
  name: 'Same Name',
  createdAt: '2024-02-03T04:05:06.000Z',
  metadata: { a: [1, { b: null }] },
});
const large = sandbox.addTaxpayer({ metadata: { notes: 'x'.repeat(20_000) } }).id;
const scope = 'taxpayers:read refresh-jobs:read client-links:create';
const authorization = await both.authorizationOf({ scope, taxpayer_ids: [...ids, large] });

/** What is sent at that time. */
const sentAt = ({ query, variables, operationName }: Row, time: number) => ({
  query: typeof query === 'function' ? query(time) : query,
  variables: typeof variables === 'function' ? variables(time) : variables,
  operationName,
});

const token = 'name status provider providerId createdAt metadata stale';

const rows: Readonly<Record<string, Row>> = {
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
  'a default that the resolver refuses': {
    query: `query Q($age: Int = -1) { taxpayerToken(taxpayerId: "${ids[0]}", maxAgeSeconds: $age) { name } }`,
    way: 'plan',
  },
  'null where it must not be': {
    query: 'query Q($id: ID = "x") { taxpayer(id: $id) { id } }',
    variables: { id: null },
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
  'aliases that look like a path joined with an underscore': {
    query: `{ a_token: taxpayer(id: "${ids[0]}") { id } a: taxpayer(id: "${ids[1]}") { token { name } } }`,
    way: 'plan',
  },
  'other ids in the text each time': {
    query: (time) =>
      `{ a: taxpayerToken(taxpayerId: "${ids[50 + time]}") { name } b: taxpayer(id: "${ids[time]}") { id } }`,
    way: 'apollo',
  },
  'an answer that is too large, from the second time on': {
    query: `query Q($id: ID!) { a: taxpayerToken(taxpayerId: $id) { metadata } b: taxpayerToken(taxpayerId: $id) { metadata name } }`,
    variables: (time) => ({ id: time === 1 ? ids[0] : large }),
    way: 'plan',
  },

  'a name that is a prototype': { query: '{ __proto__: __typename }', way: 'apollo' },
  introspection: { query: '{ __schema { queryType { name } } }', way: 'apollo' },
  'an entity of no type': {
    query: 'query Q($r: [_Any!]!) { _entities(representations: $r) { ... on Taxpayer { id } } } # of no type',
    variables: (time) => ({
      r: [...(time === 1 ? [] : [{ __typename: 'Nobody' }]), { __typename: 'Taxpayer', id: ids[0] }],
    }),
    way: 'plan',
  },
  'entities whose answer is too large': {
    query: 'query Q($r: [_Any!]!) { _entities(representations: $r) { ... on TaxpayerToken { metadata name } } }',
    variables: (time) => ({
      r: [ids[0], large, time === 1 ? ids[0] : large].map((taxpayerId) => ({
        __typename: 'TaxpayerToken',
        taxpayerId,
      })),
    }),
    way: 'plan',
  },
  'more entities than one document may ask for': {
    query: 'query Q($r: [_Any!]!) { _entities(representations: $r) { ... on Taxpayer { id } } } # many',
    variables: (time) => ({
      r: times(time === 1 ? 1 : 501, () => ({ __typename: 'Taxpayer', id: ids[0] })),
    }),
    way: 'nothing',
  },
  'a mutation': { query: 'mutation { createClientLink(input: { settings: {} }) { replayed } }', way: 'apollo' },
};

/** How many of four requests of a row are executed, and how many of these by a plan. */
const counts = { plan: { all: 4, plans: 3 }, apollo: { all: 4, plans: 0 }, nothing: { all: 1, plans: 0 } };

describe('an answer of a plan', () => {
  it.each(Object.entries(rows))('is the same as Apollo gives, each time: %s', async (_, row) => {
    const executed = () => both.executed('plan') + both.executed('apollo');
    const [plansBefore, before] = [both.executed('plan'), executed()];
    for (const time of [1, 2, 3, 4]) {
      const sent = sentAt(row, time);
      expect(await both.byPlan(sent, authorization)).toBe(await both.byApollo(sent, authorization));
    }
    const expected = counts[row.way];
    await until(() => executed() - before >= expected.all);
    expect({ all: executed() - before, plans: both.executed('plan') - plansBefore }).toEqual(expected);
  });

  it('is refused as Apollo refuses it for a caller without the scope', async () => {
    const sent = sentAt(rows['a variable'] as Row, 1);
    for (const caller of [authorization, await both.authorizationOf({ scope: '', taxpayer_ids: ids })]) {
      expect(await both.byPlan(sent, caller)).toBe(await both.byApollo(sent, caller));
    }
  });
});

it('a text that is no Unicode is refused, also after one that looks the same in UTF-8', async () => {
  for (const text of ['{ taxpayer(id: "#") { id } }', '{ __typename } # #']) {
    const send = (character: string) => both.byPlan({ query: text.replaceAll('#', character) }, authorization);
    for (let time = 0; time < 3; time += 1) await send('\ufffd');
    expect(await send('\ud800')).toContain('"code":"GRAPHQL_PARSE_FAILED"');
  }
  expect(both.output()).not.toContain('bug');
});

it('requests are kept parsed, but not those of mutations, which may hold personal data', async () => {
  const set = jest.spyOn(LRUCache.prototype, 'set');
  const query = 'query Q($id: ID!) { taxpayer(id: $id) { id } } # kept';
  const mutation = 'mutation M($id: String) { createClientLink(input: { idempotencyKey: $id }) { replayed } }';
  for (const sent of [query, query, mutation, mutation]) {
    await both.byPlan({ query: sent, variables: { id: ids[0] } }, authorization);
  }
  const kept = set.mock.calls.map(([key]) => String(key)).filter((key) => key.startsWith('{"query":'));
  set.mockRestore();
  expect(kept.map((body) => JSON.parse(body).query)).toEqual([query]);
});

it('no resolver below the root can fail for a field that is never null: these only name the taxpayer of an object', () => {
  const fields = Object.values(schema.getTypeMap()).flatMap((type) =>
    isObjectType(type) && !/^(__.*|Query|Mutation|Subscription)$/.test(type.name)
      ? Object.values(type.getFields())
      : [],
  );
  const resolved = fields.filter(({ resolve, type }) => resolve && isNonNullType(type));
  expect(resolved.map(({ name }) => name)).toEqual(['taxpayer', 'taxpayer']);
});
