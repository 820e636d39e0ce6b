import { type AnswerError, startTestGateway } from '../../support/gateway.js';
import { times } from '../../support/times.js';
import { transports } from '../../support/transports.js';

const gateway = await startTestGateway({ MAX_ALIASES: '1000' });

const long = 'x'.repeat(60_000);
const fields = (count: number) => times(count, (i) => `field${i}`).join(' ');

/** The errors of an answer, whatever it is wrapped in. */
function errorsIn(text: string): AnswerError[] {
  const line = text.split(/\r?\n/).find((each) => /^(?:data: )?[[{]/.test(each)) ?? '';
  const answer = JSON.parse(line.replace('data: ', ''));
  return Array.isArray(answer) ? answer : (answer.errors ?? answer.payload.errors);
}

describe.each(Object.entries(transports))('errors over %s', (_, send) => {
  const ask = async (query: string, variables = {}) => {
    const text = await send(gateway, JSON.stringify({ query, variables }));
    return { text, errors: errorsIn(text) };
  };

  it.each([
    ['a field', `{ ${long} }`, /^Cannot query field "x{100}…" on type "Query"\.$/],
    [
      'a field with a suggestion',
      `{ taxpayerTokn${long} }`,
      /^Cannot query field "taxpayerToknx{88}…" on type "Query"\.$/,
    ],
    ['a variable', `query ($${long}: ID) { __typename }`, /^Variable "\$x{100}…" is never used\.$/],
    [
      'a variable that is missing',
      `query ($${long}: ID!) { taxpayer(id: $${long}) { id } }`,
      /^Variable x{100}… is missing: expected ID!$/,
    ],
    ['a type', `query ($a: ${long}) { taxpayer(id: $a) { id } }`, /^Unknown type "x{100}…"\.$/],
    [
      'a fragment in itself',
      `{ ...${long} } fragment ${long} on Query { ...${long} }`,
      /^Cannot spread fragment "x{100}…" within itself\.$/,
    ],
    [
      'a conflict',
      `{ taxpayer(id: "a") { ${long}: id ${long}: __typename } }`,
      /^Fields "x{100}…[^x]*" conflict because "id" and "__typename" are different fields\./,
    ],
  ])('repeat no more than the beginning of a name: %s', async (__, query, message) => {
    const { text, errors } = await ask(query);
    expect(errors[0]?.message).toMatch(message);
    expect(text.length).toBeLessThan(1500);
  });

  it('have bounded messages and locations', async () => {
    const conflicts = (name: string) => times(200, (i) => `a${i}: ${name}`).join(' ');
    const { text, errors } = await ask(
      `{ taxpayer(id: "a") { token { ${conflicts('name')} } token { ${conflicts('status')} } } }`,
    );
    const conflict = errors.find(({ message }) => message.startsWith('Fields "token" conflict'));
    expect(conflict?.message).toMatch(/^.{499}…$/);
    expect(conflict).toHaveProperty('locations.length', 10);
    expect(text.length).toBeLessThan(3000);
  });

  it.each([
    [5, 5],
    [6, 6],
    [600, 6],
  ])('of a document with %d mistakes are %d: a sixth says that there are more', async (mistakes, listed) => {
    const { errors } = await ask(`{ taxpayer(id: "a") { ${fields(mistakes)} } }`);
    expect(errors).toHaveLength(listed);
    expect(errors[0]?.message).toBe('Cannot query field "field0" on type "Taxpayer".');
    expect(errors[4]?.message).toBe('Cannot query field "field4" on type "Taxpayer".');
    if (listed < 6) return;
    expect(errors[5]).toEqual({
      message: 'The document has more mistakes than these',
      extensions: { code: 'GRAPHQL_VALIDATION_FAILED', retryable: false, requestId: errors[0]?.extensions.requestId },
    });
  });

  it.each([
    [19, 19],
    [40_000, 20],
  ])('of variables with %d mistakes name %d', async (mistakes, listed) => {
    const { errors, text } = await ask(
      'mutation ($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }',
      { input: { settings: { transcripts: { w2: Array(mistakes).fill(1) } } } },
    );
    expect(errors).toHaveLength(1);
    expect(errors[0]?.message).toBe(
      `Variable input.settings.transcripts.w2.0 does not have the expected type: expected String`,
    );
    expect(errors[0]?.extensions.violations).toHaveLength(listed);
    expect(text.length).toBeLessThan(3000);
  });

  it('are not searched for in a document that selects the same fields very often, where that takes long', async () => {
    const [often] = (await ask(`{ taxpayer(id: "a") { ${'id '.repeat(1900)} } }`)).errors;
    expect(often?.message).toBe('The document selects the same fields too often to be checked');
  });

  it('have no locations in a document of very many lines or characters, where finding them takes long', async () => {
    const mistakes = `{ taxpayer(id: "a") { ${fields(200)} } }`;
    for (const many of ['\n'.repeat(110_000), '\r\n'.repeat(200), ' '.repeat(20_000)]) {
      const [error] = (await ask(many + mistakes)).errors;
      expect(error).toMatchObject({ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } });
      expect(error).not.toHaveProperty('locations');
    }
    expect((await ask(`${'\r\n'.repeat(199)}${mistakes}`)).errors[0]).toMatchObject({
      locations: [{ line: 200, column: 23 }],
    });
  });

  it('name the path of a long member of metadata by its beginning', async () => {
    const query = 'mutation ($m: JSONObject) { createClientLink(input: { metadata: $m }) { replayed } }';
    const metadata = `{"${long}":{"${'ö'.repeat(50_000)}":1e999}}`;
    const text = await send(gateway, `{"query":"${query}","variables":{"m":${metadata}}}`);
    const [error] = errorsIn(text);
    const beginning = /^input\.metadata\.x{100}…\.ö+…$/;
    expect(error?.message).toMatch(beginning);
    expect(error?.extensions.violations).toEqual([
      { path: expect.stringMatching(beginning), message: expect.stringContaining('may lose digits') },
    ]);
    expect(text.length).toBeLessThan(2000);
  });
});

it('keeps each error of a field that was executed: its null needs one', async () => {
  const aliases = times(30, (i) => `a${i}: taxpayer(id: "") { id }`).join(' ');
  const { errors } = await gateway.query(`{ ${aliases} }`);
  expect(errors?.map(({ path }) => path?.[0])).toEqual(times(30, (i) => `a${i}`));
});
