import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

// Without introspection no answer may tell what the schema holds: a list of words must not find the names in it.

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway({ INTROSPECTION: 'false' });
});

afterAll(async () => {
  await gateway?.stop();
});

/** The errors, without the id of their request. */
async function errorsOf(query: string, variables?: object) {
  const { errors = [] } = await gateway.query(query, variables);
  return errors.map(({ extensions: { requestId: _, ...extensions }, ...error }) => ({ ...error, extensions }));
}

/** Name and an invented one of the same length. */
const twins = (name: string) => [name, name.replace(/./g, 'x')] as const;

const guesses: readonly [guess: string, of: readonly string[], query: (name: string) => string][] = [
  ['a root field', ['taxpayerToken', 'refreshJob', 'taxpayer'], (name) => `{ ${name} }`],
  ['a root field with a selection', ['taxpayerToken'], (name) => `{ ${name} { __typename } }`],
  ['an argument', ['maxAgeSeconds', 'taxpayerIds'], (name) => `{ taxpayerToken(${name}: "5") { __typename } }`],
  ['the type of an argument', ['maxAgeSeconds'], (name) => `{ taxpayerToken(taxpayerId: "x", ${name}: {}) { name } }`],
  ['a field of a type', ['taxpayer', 'token'], (name) => `{ taxpayer(id: "x") { ${name} } }`],
  ['a mutation', ['createClientLink'], (name) => `mutation { ${name} { link } }`],
  ['a subscription', ['refreshJobUpdated'], (name) => `subscription { ${name} { status } }`],
  ['a type', ['Taxpayer'], (name) => `{ a: __typename } fragment F on ${name} { zzz }`],
  [
    'a member of an input',
    ['metadata'],
    (name) => `mutation { createClientLink(input: { ${name}: [[1]], z: 1 }) { z } }`,
  ],
  [
    'the type of a variable',
    ['ClientLinkInput'],
    (name) => `mutation ($v: ${name}) { createClientLink(input: $v) { z } }`,
  ],
  ['a directive', ['include'], (name) => `{ __typename @${name} }`],
];

describe('a name that exists is refused with the same words, at the same place, as one that does not', () => {
  test.each(guesses.flatMap(([guess, names, query]) => names.map((name) => ({ guess, name, query }))))(
    '$guess: $name',
    async ({ name, query }) => {
      const [real, invented] = twins(name);
      const told = await errorsOf(query(real));
      expect(told).toEqual(await errorsOf(query(invented)));
      expect(told).toMatchObject([
        {
          message: 'The document does not fit the schema',
          locations: [{ line: 1 }],
          extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
        },
      ]);
    },
  );
});

test('variables are refused without what would fit', async () => {
  const create = 'mutation($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }';
  const messages = [];
  for (const input of [{ nonsense: 1 }, { taxPayer: {} }, { taxPayer: { nonsense: 1 } }]) {
    messages.push(...(await errorsOf(create, { input })).map(({ message }) => message));
  }
  for (const message of messages) expect(message).toMatch(/^Variable input[\w.]* does not have the expected type/);
  expect(messages).toHaveLength(3);
});

test('what cannot be parsed, and introspection, name neither engine nor grammar', async () => {
  expect(await errorsOf('{ taxpayer(id: }')).toMatchObject([
    { message: 'The document cannot be parsed', locations: [{ line: 1, column: 16 }] },
  ]);
  expect(await errorsOf('{ __schema { types { name } } }')).toMatchObject([
    { message: 'Introspection is switched off (INTROSPECTION)' },
  ]);
});

test('limits are named all the same: they tell nothing of the schema', async () => {
  const aliases = Array.from({ length: 61 }, (_, n) => `a${n}: nonsense`).join(' ');
  const messages = (await errorsOf(`{ ${aliases} }`)).map(({ message }) => message);
  expect(messages).toContain('The document must have at most 60 aliases (MAX_ALIASES)');
  expect(messages.join()).not.toContain('nonsense');
});

test('the log tells the operator what was wrong', async () => {
  await gateway.query('{ taxpayerTokn }');
  expect(gateway.logs.join('')).toContain('Cannot query field \\"…\\" on type \\"…\\"');
});
