import { type ErrorCode, errorCodes } from '../../../src/errors/errors.js';
import { type Answer, type AnswerError, codesOf, post, startTestGateway } from '../../support/gateway.js';

const gateway = await startTestGateway({
  RATE_LIMIT_PER_MINUTE: '0',
  TOKEN_BUDGET_PER_HOUR: '0',
  MAX_BODY_BYTES: '20000',
});

const url = `${gateway.origin}/graphql`;

/** Stands for what a caller must not read again in an answer or find in a log. Letters alone, so that it can be a name, too. */
const secret = 'QzSecretValueXk';
const digits = '900112233';

describe('An error', () => {
  let answer: Answer;
  afterEach(() => {
    for (const error of answer.errors as AnswerError[]) expectForm(error);
  });

  it('has the members that are promised, and no others', async () => {
    answer = await gateway.query('{ taxpayerToken(taxpayerId: "") { status } }');
    expect(answer.errors).toEqual([
      {
        message: 'taxpayerId must not be empty',
        locations: [{ line: 1, column: 3 }],
        path: ['taxpayerToken'],
        extensions: {
          code: 'BAD_USER_INPUT',
          retryable: false,
          requestId: answer.headers.get('x-request-id'),
          violations: [{ path: 'taxpayerId', message: 'must not be empty' }],
        },
      },
    ]);
  });

  it('has a request id of the gateway where a caller chose none that can be one', async () => {
    answer = await gateway.query('{ nothing }', {}, { 'x-request-id': `${secret} "; x` });
    expect(answer.errors?.[0]?.extensions.requestId).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('has the id of its own request, also where the refusal is written from memory', async () => {
    for (const requestId of ['first', 'second']) {
      answer = await gateway.query('{ __typename }', {}, { 'content-type': 'text/plain', 'x-request-id': requestId });
      expect(answer.errors?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT', requestId });
    }
  });

  it('is the same at each try, also while the gateway pauses its own tries', async () => {
    const { sandbox } = gateway;
    const { id } = sandbox.addTaxpayer({ status: 'AUTHORIZED' });
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { status: 422 } });
    for (let attempt = 0; attempt < 3; attempt += 1) {
      answer = await gateway.query('query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id });
      const extensions = { code: 'UPSTREAM_REJECTED', retryable: false, requestId: expect.any(String) };
      expect(answer.errors?.[0]?.extensions).toEqual(extensions);
    }
    expect(sandbox.tokenCalls(id)).toBe(2);
  });
});

describe('A value that was sent is not read again', () => {
  it.each([
    ['a string where an object is expected', `mutation { createClientLink(input: "${secret}") { replayed } }`],
    [
      'a number where a string is expected',
      `mutation { createClientLink(input: { idempotencyKey: ${digits} }) { replayed } }`,
    ],
    [
      'an enum value where a string is expected',
      `mutation { createClientLink(input: { idempotencyKey: ${secret} }) { replayed } }`,
    ],
    ['a list where an ID is expected', `{ taxpayerToken(taxpayerId: ["${secret}", [${digits}]]) { status } }`],
    [
      'a block string',
      `mutation { createClientLink(input: { settings: """\n ${secret} \\""" "${digits}" found Name\n""" }) { replayed } }`,
    ],
    [
      'a string that looks like a message',
      `{ taxpayerToken(taxpayerId: "1", maxAgeSeconds: "Name; found: ${secret}. Did you mean \\"${secret}\\"?") { status } }`,
    ],
    ['that of an unknown input field', `mutation { createClientLink(input: { unknown: "${digits}" }) { replayed } }`],
    [
      'an input field given twice',
      `mutation { createClientLink(input: { metadata: { ${secret}: 1, ${secret}: 2 } }) { replayed } }`,
    ],
    ['a string in a wrong place', `{ taxpayer(id: "a" "${secret}") { id } }`],
    ['a name in a wrong place', `{ taxpayer(id: "a" ${secret} }`],
    ['an unfinished string', `{ taxpayer(id: "${secret}\n") { id } }`],
    ['a bad escape', `{ taxpayer(id: "\\x${secret}") { id } }`],
    [
      'a wrong default of a variable',
      `query ($x: Int = "${secret}") { taxpayerToken(taxpayerId: "1", maxAgeSeconds: $x) { status } }`,
    ],
    ['an id that cannot be one', `{ taxpayer(id: "${secret}/..") { id } }`],
    ['a number out of the allowed range', `{ taxpayerToken(taxpayerId: "1", maxAgeSeconds: -${digits}) { status } }`],
  ])('when it is %s', async (_, query) => {
    await expectNoEcho({ query });
  });

  it.each<[string, unknown]>([
    ['a string', secret],
    ['a number', Number(digits)],
    ['a list', [secret]],
    ['a wrong member', { idempotencyKey: { [secret]: digits } }],
    ['an unknown member', { [secret]: digits }],
    ['a member that looks like a message', { [`x" is not defined by type "${secret}`]: 1 }],
    ['metadata', { metadata: secret }],
    ['a key too long', { idempotencyKey: secret.repeat(40) }],
    ['a transcript', { settings: { transcripts: { w2: [[secret]] } } }],
  ])('when a variable is %s', async (_, input) => {
    const query = 'mutation ($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }';
    const errors = await expectNoEcho({ query, variables: { input } });
    expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT', violations: expect.any(Array) } }]);
  });

  it.each<[string, object]>([
    ['the operation name', { query: '{ __typename }', operationName: `${secret} ${digits}` }],
    ['the operation name, no string', { query: '{ __typename }', operationName: { [secret]: digits } }],
    ['the variables, no object', { query: '{ __typename }', variables: [secret, digits] }],
    ['the extensions, no object', { query: '{ __typename }', extensions: secret }],
    ['an unknown persisted query', { extensions: { persistedQuery: { version: 1, sha256Hash: secret } } }],
  ])('when it is %s', async (_, parameters) => {
    await expectNoEcho(parameters);
  });

  it.each([
    ['body', () => post(url, `{"query": "${secret}`)],
    [
      'address',
      () => fetch(`${url}?query={a}&variables={${secret}`, { headers: { 'apollo-require-preflight': 'true' } }),
    ],
  ])('when the %s is no GraphQL', async (_, send) => {
    const response = await send();
    expect(response.status).toBe(400);
    expect(await response.text()).not.toContain(secret);
  });

  it.each<[string, unknown]>([
    ['of a type that is no entity', { __typename: 'Query', id: secret }],
    ['of a type that does not exist', { __typename: secret }],
    ['without a type', { id: secret }],
    ['that is text', secret],
    ['whose key is an object', { __typename: 'Taxpayer', id: { a: secret } }],
    ['without its key', { __typename: 'RefreshJob', taxpayerId: secret }],
    ['whose key cannot be an id', { __typename: 'TaxpayerToken', taxpayerId: `${secret}/..` }],
  ])('when a representation is one %s', async (_, representation) => {
    const query = 'query ($r: [_Any!]!) { _entities(representations: $r) { __typename } }';
    const errors = await expectNoEcho({ query, variables: { r: [representation] } });
    expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
  });
});

it('An error names the place of a wrong value, and what was expected instead', async () => {
  const { errors } = await gateway.query(
    'mutation ($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }',
    { input: { metadata: 'x', settings: { transcripts: { w2: [1, null] }, flowTypo: 'x' } } },
  );
  expect(errors?.[0]?.extensions.violations).toEqual([
    { path: 'input.metadata', message: 'does not have the expected type: expected JSONObject' },
    { path: 'input.settings.transcripts.w2.0', message: 'does not have the expected type: expected String' },
    { path: 'input.settings.transcripts.w2.1', message: 'must not be null: expected String!' },
    {
      path: 'input.settings',
      message: 'has a field that ClientLinkSettingsInput does not define. Did you mean "flowType"?',
    },
  ]);
  const literal = await gateway.query('{ taxpayerToken(taxpayerId: 1.5, maxAgeSeconds: "x") { status } }');
  expect(literal.errors?.map(({ message }) => message)).toEqual([
    'taxpayerId does not have the expected type: expected ID',
    'maxAgeSeconds does not have the expected type: expected Int',
  ]);
  const wrong = await gateway.query(
    'mutation ($adasKey: String = [5]) { createClientLink(input: { idempotencyKey: $adasKey, settings: { flowTypo: "x", transcripts: { w2: ["x", { y: 1 }, 2] } } }) { replayed } }',
  );
  expect(wrong.errors?.map(({ message }) => message)).toEqual([
    'Variable adasKey does not have the expected type: expected String',
    'Field "flowTypo" is not defined by type "ClientLinkSettingsInput". Did you mean "flowType"?',
    'w2 does not have the expected type: expected String',
    'w2 does not have the expected type: expected String',
  ]);
  expect(gateway.output()).not.toContain('adasKey');
  const syntax = await gateway.query('{ taxpayer(id: "a" }');
  expect(syntax.errors?.[0]?.message).toBe('Syntax Error: Expected Name, found "}".');
});

it('A null that only shows when its field is executed is the mistake of the caller', async () => {
  const query = 'query ($id: ID = "x", $if: Boolean = true) { taxpayer(id: $id) { id } __typename @skip(if: $if) }';
  for (const variables of [{ id: null }, { if: null }]) {
    const codes = codesOf(await gateway.query(query, variables));
    expect(codes.join()).toMatch(/^(BAD_USER_INPUT|GRAPHQL_VALIDATION_FAILED)$/);
  }
  expect(gateway.output()).not.toContain('a bug of the gateway');
});

async function expectNoEcho(parameters: object): Promise<readonly AnswerError[]> {
  const logged = gateway.logs.length;
  const response = await post(url, parameters, { 'x-request-id': 'fixed' });
  const text = await response.text();
  const { errors } = JSON.parse(text) as { errors: AnswerError[] };
  expect(errors.length).toBeGreaterThan(0);
  for (const error of errors) {
    expectForm(error);
    expect(error.extensions.code).not.toBe('INTERNAL_SERVER_ERROR');
  }
  for (const output of [text, [...response.headers].join(), gateway.logs.slice(logged).join('')]) {
    expect(output).not.toContain(secret);
    expect(output).not.toContain(digits);
  }
  return errors;
}

function expectForm({ message, extensions, ...rest }: AnswerError) {
  expect(message).toEqual(expect.any(String));
  expect(['locations', 'path']).toEqual(expect.arrayContaining(Object.keys(rest)));
  const promised = ['code', 'retryable', 'retryAfterSeconds', 'requestId', 'violations'];
  expect(promised).toEqual(expect.arrayContaining(Object.keys(extensions)));
  expect(extensions.retryable).toBe(errorCodes[extensions.code as ErrorCode].retryable);
  expect(extensions.requestId).toMatch(/^[\w.-]+$/);
}
