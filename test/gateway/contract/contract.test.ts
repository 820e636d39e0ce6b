import fc from 'fast-check';
import { serviceUrl } from '../../../src/datasources/TaxpayerService.js';
import { codesOf, post, startTestGateway, type Texts } from '../../support/gateway.js';

const gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '0', TOKEN_BUDGET_PER_HOUR: '0' });
beforeEach(() => gateway.sandbox.resetCounters());

/** What callers and proxies send along, none of which is the service's business. */
const callersHeaders = {
  authorization: 'Bearer the-callers-own-token',
  cookie: 'session=the-callers-cookie',
  'x-request-id': 'the-callers-request',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=the-callers-trace',
  baggage: 'user=the-caller',
  'x-forwarded-for': '203.0.113.7',
  forwarded: 'for=203.0.113.7',
  'x-api-key': 'the-callers-key',
  'accept-language': 'de',
  'user-agent': 'the-callers-browser',
  origin: 'https://studio.apollographql.com',
  referer: 'https://studio.apollographql.com/page',
};

/** What goes with every request, whoever asked; the host and the connection are looked at apart. */
const always = {
  accept: 'application/json',
  'user-agent': 'taxpayer-gateway',
  'accept-encoding': 'gzip, deflate, br',
};

const clientCredentials = `Bearer ${Buffer.from('test-client:test-secret').toString('base64')}`;

describe('A request to the service', () => {
  it("for a job's status is the documented one, with the taxpayer's token, which a documented one asked for", async () => {
    const { id, accessToken } = gateway.sandbox.addTaxpayer();
    const { jobId } = gateway.sandbox.addJob({ taxpayerId: id });
    const { errors } = await gateway.query(
      'query ($id: ID!, $jobId: ID!) { refreshJob(taxpayerId: $id, jobId: $jobId) { status } }',
      { id, jobId },
      callersHeaders,
    );
    expect(errors).toBeUndefined();
    const get = (path: string, authorization: string) => ({
      method: 'GET',
      path,
      headers: { ...always, 'service-api-version': '2024-01-01', authorization },
      body: '',
    });
    expect(sent()).toEqual([
      get(`/auth/tax-payer/${id}/token`, clientCredentials),
      get(`/tax-payer/${id}/refresh/${jobId}`, `Bearer ${accessToken}`),
    ]);
  });

  it('for a client link is the documented one, without a version', async () => {
    const { errors } = await createLink({ settings: { flowType: 'full' } }, callersHeaders);
    expect(errors).toBeUndefined();
    const body = '{"settings":{"flowType":"full"}}';
    expect(sent()).toEqual([
      {
        method: 'POST',
        path: '/client-links',
        headers: {
          ...always,
          authorization: clientCredentials,
          'content-type': 'application/json',
          'content-length': String(body.length),
        },
        body,
      },
    ]);
  });
});

describe('The body of a client link', () => {
  it('has every member of the interface under its documented name', async () => {
    const names = {
      actr: 'ACTR',
      reca: 'RECA',
      waid: 'WAID',
      venf: 'VENF',
      w2: 'W2',
      form1095A: '1095-A',
      notice: 'NOTICE',
    };
    const common = {
      flowType: 'full',
      prefillData: {
        personalInfo: { firstName: 'Ada', lastName: 'Åström', ssn: '900-00-0001' },
        businessInfo: { name: 'Ada & Co', taxId: '90-0000001', type: 'llc', phone: '+1 555 0100', title: 'CEO' },
        address: { street: '1 Main St', other: 'Apt 2', city: 'Springfield', state: 'IL', zip: '01234' },
      },
    };
    const listed = Object.entries(names).map(([ours, theirs]) => [ours, theirs, [`${ours}-1`, `${ours}-2`]] as const);
    await createLink({
      settings: { ...common, transcripts: Object.fromEntries(listed.map(([name, , list]) => [name, list])) },
    });
    expect(JSON.parse(lastBody())).toEqual({
      settings: { ...common, transcripts: Object.fromEntries(listed.map(([, name, list]) => [name, list])) },
    });
  });

  it.each<[object, object]>([
    [{}, {}],
    [{ metadata: null, settings: null, idempotencyKey: 'never-sent-on' }, {}],
    [{ settings: { flowType: null, transcripts: null, prefillData: null } }, {}],
    [{ settings: { transcripts: { actr: null }, prefillData: { personalInfo: {}, address: { zip: null } } } }, {}],
    [{ settings: { flowType: '' } }, { settings: { flowType: '' } }],
    [{ settings: { transcripts: { w2: [] } } }, { settings: { transcripts: { W2: [] } } }],
    [
      { settings: { prefillData: { personalInfo: { firstName: '', ssn: null } } } },
      { settings: { prefillData: { personalInfo: { firstName: '' } } } },
    ],
  ])('for %j is %j: nothing the caller left out', async (input, body) => {
    const { errors } = await createLink(input);
    expect(errors).toBeUndefined();
    expect(JSON.parse(lastBody())).toEqual(body);
  });

  it('is the same for values written into the document', async () => {
    const { errors } = await gateway.query(`mutation {
      createClientLink(input: {
        metadata: { a: 1, b: [true, null, "x", 1.5, { __proto__: "own" }], c: "é\\\\n" }
        settings: { transcripts: { form1095A: "one" } }
      }) { replayed }
    }`);
    expect(errors).toBeUndefined();
    expect(lastBody()).toBe(
      '{"metadata":{"a":1,"b":[true,null,"x",1.5,{"__proto__":"own"}],"c":"é\\\\n"},"settings":{"transcripts":{"1095-A":["one"]}}}',
    );
  });

  it.each([
    '{"__proto__":{"polluted":true},"constructor":{"prototype":{"x":1}},"toString":"own","hasOwnProperty":null}',
    '{"":0,"a.b":1,"$ref":2,"with space":3,"emoji 👍":"👩‍👩‍👧","\\u0000":"\\u0000","decomposed é":" é ","nested":{"null":null,"no":[],"none":{},"list":[[{"a":false}],-1.5e-9,null]},"lone":"\\ud800","rtl":"‮"}',
  ])('passes the metadata %s on unchanged', async (metadata) => {
    const body = `{"query":"mutation ($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }","variables":{"input":{"metadata":${metadata}}}}`;
    const response = await post(`${gateway.origin}/graphql`, body);
    expect(await response.json()).toEqual({ data: { createClientLink: { replayed: false } } });
    expect(lastBody()).toBe(`{"metadata":${metadata}}`);
  });
});

describe('An answer of the service', () => {
  it.each([
    ['2026-01-05T10:00:00', '10:00:00.000'],
    ['2026-01-05T12:00:00.789123+02:00', '10:00:00.789'],
    ['2026-01-05T10:00', '10:00:00.000'],
    ['2026-01-05T10:00:00-03:30', '13:30:00.000'],
    ['2026-01-05T12:00:00.789+0200', '10:00:00.789'],
    ['2026-01-05 10:00:00', '10:00:00.000'],
    ['2026-01-05', '00:00:00.000'],
  ])('may give the time %j, which is %s in UTC', async (created_at, time) => {
    const { sandbox } = gateway;
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { set: { created_at } }, times: 1 });
    const { data } = await gateway.query(`{ taxpayerToken(taxpayerId: "${sandbox.addTaxpayer().id}") { createdAt } }`);
    expect(data).toEqual({ taxpayerToken: { createdAt: `2026-01-05T${time}Z` } });
  });

  it.each([
    [' HTTPS://service.example', true],
    ['ftp://service.example', false],
    ['https://', false],
    ['javascript:alert(1)', false],
  ])('with the link %j is taken: %s', async (url, isTaken) => {
    gateway.sandbox.arm({ endpoint: 'createClientLink', fault: { set: { url } }, times: 1 });
    const { errors } = await createLink({});
    expect(errors?.[0]?.extensions.code).toBe(isTaken ? undefined : 'OUTCOME_UNKNOWN');
  });
});

describe('An id', () => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    'must not be empty': [''],
    // What nobody sees.
    'must not be blank': [
      ' ',
      '   ',
      '\u00a0',
      '\u2003\u3000',
      '\u2028',
      '\u200b',
      '\u200d\u200c',
      '\u2060\ufeff',
      ' \u200b ',
      '\u00ad',
    ],
    // What a proxy on the way might cut off, or obey.
    'must not begin or end with white space': [' x', 'x ', '\u00a0x', 'x\u3000', '\ufeffx', 'x\u2029'],
    'must not contain control characters or any of / \\ % ? #': [
      'a/b',
      'a\\b',
      '%',
      'a%2Fb',
      '%2e%2e',
      'a?b',
      'a#b',
      'a\u0000b',
      'a\r\nx: y',
      'a\u007fb',
      'a\u0085b',
    ],
    'must not be a dot segment': ['.', '..'],
    'must be well-formed Unicode': ['\ud800', '\udc00x'],
    'must have at most 256 characters': ['a'.repeat(257)],
  };
  it.each(Object.entries(refused).flatMap(([message, ids]) => ids.map((id) => [id, message] as const)))(
    '%j is refused with the name of the argument, without a call: it %s',
    async (id, message) => {
      const { data, errors } = await gateway.query(
        `query ($id: ID!) {
          taxpayer(id: $id) { id }
          token: taxpayerToken(taxpayerId: $id) { status }
          job: refreshJob(taxpayerId: "t", jobId: $id) { status }
        }`,
        { id },
      );
      expect(data).toEqual({ taxpayer: null, token: null, job: null });
      expect(errors?.map(({ extensions: { code, violations } }) => ({ code, violations }))).toEqual(
        ['id', 'taxpayerId', 'jobId'].map((path) => ({ code: 'BAD_USER_INPUT', violations: [{ path, message }] })),
      );
      expect(sent()).toEqual([]);
    },
  );

  const odd = fc.oneof(
    fc.constantFrom(
      ...Object.values(refused).flat(),
      ...['%2E%2E', '.%2e', '../token', '..;', '...', '//', '%00', 'a'.repeat(256), '👍'.repeat(100), '\u202e', '日本'],
      ...['__proto__', 'constructor', 'token', 'client-links', 'http://x', 'a;b=c'],
    ),
    fc.string({ unit: 'grapheme-ascii', maxLength: 4 }),
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.string({ unit: fc.constantFrom(...'./%2efF\\?#a\u0000\r\n') }),
    fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 }).map((units) => String.fromCharCode(...units)),
  );

  it('becomes one segment of the path, or no URL at all', () => {
    fc.assert(
      fc.property(odd, odd, (first, second) => {
        const built = attempt(() => serviceUrl('http://service.test/base', 'tax-payer', first, 'refresh', second));
        if (built === undefined) return;
        // As a strict server reads it, and as a client that normalises does.
        for (const path of [built.replace('http://service.test', ''), new URL(built).pathname]) {
          const segments = path.split('/');
          expect(segments).toHaveLength(6);
          expect(segments.map(decodeURIComponent)).toEqual(['', 'base', 'tax-payer', first, 'refresh', second]);
        }
        expect(new URL(built).search + new URL(built).hash).toBe('');
      }),
      { numRuns: 2000 },
    );
  });

  const recordOf = async (id: string) => {
    const document = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { taxpayerId name } }';
    return (await gateway.query<{ taxpayerToken: unknown }>(document, { id })).data?.taxpayerToken;
  };
  const capital = '6BA7B810-9DAD-41D1-80B4-00C04FD430C8';

  it('is another one in another spelling, also that of a UUID', async () => {
    gateway.sandbox.addTaxpayer({ id: capital, name: 'Found' });
    expect(await recordOf(capital)).toEqual({ taxpayerId: capital, name: 'Found' });
    expect(await recordOf(capital.toLowerCase())).toBeNull();
  });

  it.each([
    '550e8400-e29b-41d4-a716-446655440000',
    'with space',
    'zero\u200bwidth',
    'Zoë',
    "it's",
    'a:b@c',
    '日本',
    '...',
    '__proto__',
    'd.o.t.s.',
    'b'.repeat(256),
  ])('%j is accepted: the interface states no format', async (id) => {
    gateway.sandbox.addTaxpayer({ id, name: 'Found' });
    expect(await recordOf(id)).toEqual({ taxpayerId: id, name: 'Found' });
  });
});

it('The service is read on one connection, and sent each creation on one of its own', async () => {
  const { query, sandbox } = await startTestGateway();
  for (const id of sandbox.addTaxpayers(3)) {
    expect((await query(`{ taxpayerToken(taxpayerId: "${id}") { status } }`)).errors).toBeUndefined();
    expect((await query('mutation { createClientLink(input: {}) { replayed } }')).errors).toBeUndefined();
  }
  expect(sandbox.counters()).toMatchObject({ createClientLink: 3, taxpayerToken: 3, connections: 4 });
});

it('An access token of the service is used if it has at most 16,000 characters, which a header can hold', async () => {
  const { sandbox } = gateway;
  const ask = (id: string) =>
    gateway.query(
      'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { name } refreshJob(taxpayerId: $id, jobId: "j") { status } }',
      { id },
    );
  const { id } = sandbox.addTaxpayer({ accessToken: 't'.repeat(16_000) });
  sandbox.addJob({ taxpayerId: id, jobId: 'j', status: 'completed' });
  expect(await ask(id)).toMatchObject({ data: { refreshJob: { status: 'COMPLETED' } } });
  for (const accessToken of ['t'.repeat(16_001), 't'.repeat(1_000_000), 'with space', 'tök', '']) {
    const answer = await ask(sandbox.addTaxpayer({ accessToken }).id);
    expect(codesOf(answer)).toEqual(Array(2).fill('UPSTREAM_INVALID_RESPONSE'));
  }
  expect(sandbox.counters().refreshJob).toBe(1);
});

/** The requests the service received, without the two headers that depend on the connection. */
function sent() {
  return gateway.sandbox.requests().map(({ method, path, headers, body }) => {
    const { host, connection, ...rest } = Object.fromEntries(
      headers.map(([name, value]) => [name.toLowerCase(), value]),
    );
    expect(host).toBe(new URL(gateway.sandbox.url).host);
    expect(connection).toMatch(/^(keep-alive|close)$/);
    expect(headers).toHaveLength(Object.keys(rest).length + 2);
    return { method, path, headers: rest, body };
  });
}

function createLink(input: object, headers?: Texts) {
  const document = 'mutation ($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }';
  return gateway.query(document, { input }, headers);
}

function lastBody() {
  return gateway.sandbox.requests('createClientLink').at(-1)?.body ?? '';
}

function attempt(build: () => string) {
  try {
    return build();
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return undefined;
  }
}
