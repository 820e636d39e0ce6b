import { codesOf, startTestGateway } from '../../support/gateway.js';

const gateway = await startTestGateway();
const small = await startTestGateway({
  MAX_DEPTH: '3',
  MAX_ALIASES: '2',
  MAX_TOKENS: '40',
  MAX_BODY_BYTES: '2000',
  MAX_REPRESENTATIONS: '1',
});

describe('the limits of a document', () => {
  const metadata = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`) as object;
  const create = 'mutation($m: JSONObject) { createClientLink(input: { metadata: $m }) { replayed } }';
  const entities = 'query($r: [_Any!]!) { _entities(representations: $r) { __typename } }';
  const taxpayer = { __typename: 'Taxpayer', id: 'x' };

  test.each<[name: string, value: string, query: string, variables?: object]>([
    ['MAX_DEPTH', 'at most 3 levels', '{ taxpayer(id: "x") { token { taxpayer { id } } } }'],
    [
      'MAX_DEPTH',
      'at most 3 levels',
      '{ taxpayer(id: "x") { ...F } } fragment F on Taxpayer { token { taxpayer { id } } }',
    ],
    ['MAX_ALIASES', 'at most 2 aliases', '{ a: __typename b: __typename c: __typename }'],
    ['MAX_ALIASES', 'at most 2 aliases', '{ ...F ...F } fragment F on Query { a: __typename b: __typename }'],
    ['MAX_TOKENS', 'at most 40 tokens', `{ ${'__typename '.repeat(40)} }`],
    ['MAX_BODY_BYTES', 'at most 2000 bytes', `{ __typename } # ${'x'.repeat(2000)}`],
    ['levels', 'at most 20 levels', create, { m: metadata(24) }],
    ['levels', 'at most 30 levels', create, { m: metadata(40) }],
    ['MAX_REPRESENTATIONS', 'at most 1 items', entities, { r: [taxpayer, taxpayer] }],
  ])('are named with their values in the error: %s, %s', async (name, value, query, variables = {}) => {
    const answer = await small.query(query, variables);
    const [error] = (answer.errors ?? []).filter(({ message }) => message.includes(name));
    expect(error?.message).toContain(value);
    expect(['GRAPHQL_VALIDATION_FAILED', 'BAD_USER_INPUT']).toContain(error?.extensions.code);
  });

  test.each([
    ['at most 50 directives', `{ __typename ${'@skip(if: false) '.repeat(51)} }`],
    ['at most 60 root fields', `{ ${'...F '.repeat(31)} } fragment F on Query { __typename ... { __typename } }`],
    [
      'no directives at the root of a subscription',
      'subscription { ...F @include(if: false) } fragment F on Subscription { refreshJobUpdated(taxpayerId: "x", jobId: "x") { name } }',
    ],
    [
      'at most 5 fields in a mutation',
      'mutation { ...F ...F } fragment F on Mutation { __typename __typename __typename }',
    ],
  ])('that no setting changes: %s', async (limit, query) => {
    const { errors } = await gateway.query(query);
    expect(errors?.map(({ message }) => message)).toContain(`The document must have ${limit}`);
  });

  test.each([
    [9998, []],
    [9999, ['input.metadata must have at most 10000 values']],
  ])('count the values of metadata: a list of %i numbers', async (length, messages) => {
    const { errors = [] } = await gateway.query(create, { m: { list: Array(length).fill(0) } });
    expect(errors.map(({ message }) => message)).toEqual(messages);
  });

  test.each(['x'.repeat(200_000), Array(60_000).fill('')])(
    'count a variable as often as it is used in metadata',
    async (m) => {
      const query = `mutation($m: [String]) { createClientLink(input: { metadata: { a: [${'$m '.repeat(20)}] } }) { replayed } }`;
      const { errors } = await gateway.query(query, { m });
      expect(errors?.[0]?.message).toBe('input must have at most 262144 characters (MAX_BODY_BYTES)');
    },
  );

  test('let pass what is exactly at them', async () => {
    const document =
      '{ a: taxpayer(id: "x") { token { __typename } } b: __typename @skip(if: false) @include(if: true) }';
    const answer = await small.query(document);
    expect(codesOf(answer)).toEqual(['NOT_FOUND']);
    expect(
      codesOf(await gateway.query(`mutation { ...F } fragment F on Mutation { ${'__typename '.repeat(5)} }`)),
    ).toEqual([]);
  });
});
