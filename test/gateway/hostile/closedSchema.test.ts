import { startTestGateway } from '../../support/gateway.js';
import { times } from '../../support/times.js';

// Without introspection no answer may tell what the schema holds: a list of words must not find the names in it.

const gateway = await startTestGateway({ INTROSPECTION: 'false' });

/** The errors, without the id of their request. */
async function errorsOf(query: string, variables?: object) {
  const { errors = [] } = await gateway.query(query, variables);
  return errors.map(({ extensions: { requestId: _, ...extensions }, ...error }) => ({ ...error, extensions }));
}

/** The name, and an invented one of the same length. */
const twins = (name: string) => [name, name.replace(/./g, 'x')] as const;

const guesses: readonly [guess: string, names: readonly string[], query: (name: string) => string][] = [
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
  [
    'the type of a variable, beside another mistake',
    ['CreateClientLinkInput'],
    (name) => `mutation ($v: ${name}) { createClientLink(input: $v) { z } }`,
  ],
  [
    'the type of a variable that is not used, beside another mistake',
    ['String'],
    (name) => `query ($v: ${name}) { zzz }`,
  ],
  [
    'the type of a fragment, beside another mistake',
    ['Taxpayer'],
    (name) => `fragment F on ${name} { __typename } { zzz ...F }`,
  ],
  [
    'the type of a fragment in another, beside another mistake',
    ['TaxpayerToken'],
    (name) =>
      `{ a: __typename taxpayer(id: "x") { ...G } } fragment F on ${name} { name } fragment G on Taxpayer { ...F }`,
  ],
];

test.each(guesses.flatMap(([guess, names, query]) => names.map((name) => ({ guess, name, query }))))(
  'a name that exists is refused with the same words as one that does not, as $guess: $name',
  async ({ name, query }) => {
    const [real, invented] = twins(name);
    const told = await errorsOf(query(real));
    expect(told).toEqual(await errorsOf(query(invented)));
    const extensions = { code: 'GRAPHQL_VALIDATION_FAILED', retryable: false };
    expect(told).toEqual([{ message: 'The document does not fit the schema', extensions }]);
  },
);

test('a member of a variable is refused with the same words whether it exists', async () => {
  const create = 'mutation($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }';
  const wrong = { metadata: [[1]], settings: { transcripts: { w2: [null] } }, idempotencyKey: [[1]] };
  for (const [name, value] of Object.entries(wrong)) {
    const [real, invented] = twins(name);
    const told = await errorsOf(create, { input: { [real]: value, nonsense: 1 } });
    expect(told).toEqual(await errorsOf(create, { input: { [invented]: value, nonsense: 1 } }));
    expect(told).toMatchObject([
      {
        message: 'Variable input does not have the expected type',
        extensions: { violations: [{ path: 'input', message: 'does not have the expected type' }] },
      },
    ]);
  }
});

test('what cannot be parsed, and introspection, name neither engine nor grammar', async () => {
  expect(await errorsOf('{ taxpayer(id: }')).toMatchObject([
    { message: 'The document cannot be parsed', locations: [{ line: 1, column: 16 }] },
  ]);
  expect(await errorsOf('{ __schema { types { name } } }')).toMatchObject([
    { message: 'Introspection is switched off (INTROSPECTION)' },
  ]);
});

test('limits, and variables without a value, are named all the same: they tell nothing of the schema', async () => {
  const query = 'query ($v: ID!) { taxpayer(id: $v) { id } }';
  const told = [...(await errorsOf(query)), ...(await errorsOf(query, { v: null }))].map(({ message }) => message);
  expect(told).toEqual(['Variable v is missing: expected ID!', 'Variable v must not be null: expected ID!']);
  const aliases = times(61, (n) => `a${n}: nonsense`).join(' ');
  const messages = (await errorsOf(`{ ${aliases} }`)).map(({ message }) => message);
  expect(messages).toContain('The document must have at most 60 aliases (MAX_ALIASES)');
  expect(messages.join()).not.toContain('nonsense');
});

test('the log tells the operator what was wrong', async () => {
  await gateway.query('{ taxpayerTokn }');
  expect(gateway.output()).toContain('Cannot query field \\"…\\" on type \\"…\\"');
});
