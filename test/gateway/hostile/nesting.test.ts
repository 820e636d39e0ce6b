import { linesWith, startTestGateway, type Texts } from '../../support/gateway.js';
import { times } from '../../support/times.js';

const levels = 20_000; // far more than any stack has room for
const around = (open: string, inner: string, close: string, count = levels) =>
  open.repeat(count) + inner + close.repeat(count);
const link = (metadata: string) => `createClientLink(input: { metadata: ${metadata} }) { replayed }`;
const linkThatParses = link(around('{a:', '1', '}', 1200));
const chain = (end: string) =>
  times(9000, (n) => `fragment F${n} on Query { ...F${n + 1} }`).join(' ') +
  `fragment F9000 on Query { ${end} } { ...F0 }`;

const documents: Texts = {
  'a list for an id': `{ taxpayer(id: ${around('[', '"x"', ']')}) { id } }`,
  metadata: `mutation { ${link(around('{a:', '1', '}'))} }`,
  'metadata that is too deep only to be compared': `mutation { ${linkThatParses} ${linkThatParses} }`,
  'the default of a variable': `query($id: ID = ${around('[', '"x"', ']')}) { taxpayer(id: $id) { id } }`,
  'the type of a variable': `query($id: ${around('[', 'ID', ']')}) { taxpayer(id: $id) { id } }`,
  'the argument of a directive': `{ __typename @include(if: ${around('[', 'true', ']')}) }`,
  fields: around('{ a ', '{ id }', '}'),
  'inline fragments': `{ ${around('... {', '__typename', '}')} }`,
  'fragments that spread the next': chain('__typename'),
  'fragments in a circle': chain('...F0'),
  'the definition of a type': `type X { a(b: Int = ${around('[', '1', ']')}): Int } { __typename }`,
};

const gateway = await startTestGateway({ MAX_TOKENS: '100000', MAX_BODY_BYTES: '10000000', MAX_DEPTH: '500' });

describe('a document nested too deeply is the mistake of its sender', () => {
  it.each(Object.entries(documents))('%s', async (_, query) => {
    const { status, errors } = await gateway.query(query);
    expect(errors).toMatchObject([
      { message: 'The document is nested too deeply', extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } },
    ]);
    expect(status).toBe(400);
    expect(linesWith(gateway.logs, { level: 'error' })).toEqual([]);
  });
});
