import { isEnumType, isInputObjectType, isObjectType } from 'graphql';
import { linesWith, metric, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { schema } from '../../support/schema.js';
import { until } from '../../support/until.js';

/** Federation's and Apollo's own additions, which are not ours to describe. */
const foreign = /^_|^CacheControlScope$|^federation__|^link__/;

const ownTypes = Object.values(schema.getTypeMap()).filter(
  ({ name }) => !foreign.test(name) && !/^(String|Int|Boolean|ID|Float)$/.test(name),
);

it('The schema describes every type, field, argument and value to a frontend developer', () => {
  const described: [string, string | null | undefined][] = ownTypes.flatMap((type) => {
    const members: [string, string | null | undefined][] = [[type.name, type.description]];
    if (isObjectType(type) || isInputObjectType(type)) {
      for (const field of Object.values(type.getFields())) {
        if (foreign.test(field.name)) continue;
        members.push([`${type.name}.${field.name}`, field.description]);
        for (const arg of 'args' in field ? field.args : []) {
          members.push([`${type.name}.${field.name}(${arg.name})`, arg.description]);
        }
      }
    }
    if (isEnumType(type))
      for (const value of type.getValues()) members.push([`${type.name}.${value.name}`, value.description]);
    return members;
  });
  expect(described.length).toBeGreaterThan(90);
  expect(described.filter(([, text]) => !text || text.length < 5 || !/[.:]$/.test(text.trim()))).toEqual([]);
});

describe('A value of the service that the schema does not know', () => {
  let gateway: TestGateway;
  // One for each test, because a gateway logs a value once.
  beforeEach(async () => {
    gateway = await startTestGateway();
  });

  const msg = 'the service uses a value the schema has no name for';
  const warnings = () => linesWith(gateway.logs, { level: 'warn', msg });
  const read = async (id: string) => {
    const document = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { provider providerId status } }';
    return (await gateway.query<{ taxpayerToken: object }>(document, { id })).data?.taxpayerToken;
  };

  it('is UNRECOGNIZED, keeps the raw provider id and is logged once', async () => {
    const { sandbox } = gateway;
    for (const id of sandbox.addTaxpayers(3, { providerId: 'prov-x', status: 'PAUSED' })) {
      expect(await read(id)).toEqual({ provider: 'UNRECOGNIZED', providerId: 'prov-x', status: 'UNRECOGNIZED' });
      const { jobId } = sandbox.addJob({ taxpayerId: id, status: 'queued' });
      const { data } = await gateway.query(`{ refreshJob(taxpayerId: "${id}", jobId: "${jobId}") { status } }`);
      expect(data).toEqual({ refreshJob: { status: 'UNRECOGNIZED' } });
    }
    const unknown = { provider: 'prov-x', 'taxpayer-status': 'PAUSED', 'job-status': 'queued' };
    expect(Object.fromEntries(warnings().map(({ kind, value }) => [kind, value]))).toEqual(unknown);
    expect(warnings()).toHaveLength(3);
    for (const kind of Object.keys(unknown)) {
      expect(await metric(gateway, `gateway_unknown_values_total{kind="${kind}"}`)).toBe(1);
    }
  });

  it.each(['UNRECOGNIZED', '__proto__', '', 'authorized', 'AUTHORIZED '])(
    'is not confused with a known value: %j',
    async (status) => {
      const { id } = gateway.sandbox.addTaxpayer({ status, providerId: status });
      expect(await read(id)).toEqual({ provider: 'UNRECOGNIZED', providerId: status, status: 'UNRECOGNIZED' });
    },
  );

  it.each(['912-83-7465', 'token0a1b2c3d', 'two words', 'x'.repeat(41), ''])(
    'is withheld from the log when it is not a plain word: %j',
    async (status) => {
      expect(await read(gateway.sandbox.addTaxpayer({ status }).id)).toMatchObject({ status: 'UNRECOGNIZED' });
      expect(warnings().at(-1)).toMatchObject({ kind: 'taxpayer-status', value: 'withheld: not a plain word' });
    },
  );

  it('breaks the contract if it has more than 1,000 characters', async () => {
    const { id } = gateway.sandbox.addTaxpayer({ status: 'x'.repeat(1001) });
    const { errors } = await gateway.query('query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id });
    expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_INVALID_RESPONSE' } }]);
  });

  it('is logged for at most a hundred values, of which each is shortened', async () => {
    for (let n = 0; n < 120; n += 1) {
      await read(gateway.sandbox.addTaxpayer({ providerId: `new-${n}-${'x'.repeat(200)}` }).id);
    }
    expect(warnings().length).toBeGreaterThan(0);
    expect(warnings().length).toBeLessThanOrEqual(100);
    for (const { value } of warnings()) expect(value.length).toBeLessThanOrEqual(64);
  });
});

const gateway = await startTestGateway();

it('Introspection names only locations of directives that clients know', async () => {
  const answer = await gateway.query('{ __schema { directives { locations } } }');
  expect(JSON.stringify(answer)).not.toContain('DIRECTIVE_DEFINITION');
});

const deep = JSON.parse(`${'{"planted":'.repeat(21)}1${'}'.repeat(21)}`);
const broken = 'The service gave a value that breaks its contract';
const tooDeep = 'metadata must be nested at most 20 levels';
const tooMany = 'metadata must have at most 10000 values';
it.each<[string, string, Readonly<Record<string, unknown>>, string]>([
  ['name', 'name: Invalid input: expected string, received array', { name: ['planted'] }, broken],
  ['metadata', 'metadata: Invalid input', { metadata: ['planted'] }, broken],
  ['metadata', tooDeep, { metadata: deep }, tooDeep],
  ['metadata', tooMany, { metadata: { list: Array(9999).fill({}) } }, tooMany],
  ['createdAt', 'created_at: Invalid input', { created_at: '2026-02-30T10:00:00Z' }, broken],
  ['createdAt', 'created_at: Invalid input', { created_at: '9999-12-31T23:59:59-05:00' }, broken], // in UTC the year 10000
])(
  'A record of the service with something of a wrong form answers all but %s, and so do the jobs: %s',
  async (field, reason, set, message) => {
    const { sandbox, query, output } = gateway;
    const { id } = sandbox.addTaxpayer({ name: 'Ada', metadata: { a: 1 }, createdAt: '2024-02-03T00:00:00Z' });
    const { jobId } = sandbox.addJob({ taxpayerId: id, status: 'completed' });
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { set } });
    const variables = { id, jobId };
    const record = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { name metadata createdAt status } }';
    const job = 'query ($id: ID!, $jobId: ID!) { refreshJob(taxpayerId: $id, jobId: $jobId) { status } }';
    const whole = { name: 'Ada', metadata: { a: 1 }, createdAt: '2024-02-03T00:00:00.000Z', status: 'CREATED' };
    for (let time = 0; time < 3; time += 1) {
      const { data, errors } = await query(record, variables);
      expect(data).toEqual({ taxpayerToken: { ...whole, [field]: null } });
      expect(errors).toMatchObject([
        { message, path: ['taxpayerToken', field], extensions: { code: 'UPSTREAM_INVALID_RESPONSE' } },
      ]);
    }
    expect(await query(job, variables)).toMatchObject({ data: { refreshJob: { status: 'COMPLETED' } } });
    expect(sandbox.tokenCalls(id)).toBe(1);
    await until(() => output().includes(reason));
    expect(output()).not.toContain('planted');
  },
);
