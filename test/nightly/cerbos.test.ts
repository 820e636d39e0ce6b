import { resolve } from 'node:path';
import { freePort } from '../support/freePort.js';
import {
  type Answer,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
  type TrustedProvider,
} from '../support/gateway.js';
import { startProgram } from '../support/program.js';
import { times } from '../support/times.js';

// The decision point as somebody else built it: Cerbos, with the policy of the example.

const folder = resolve(import.meta.dirname, '../../examples/decision-point/cerbos');

let provider: TrustedProvider;
let gateway: TestGateway;

beforeAll(async () => {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const program = resolve(import.meta.dirname, 'node_modules/@cerbos/cerbos-linux-x64/cerbos-linux-x64');
  const env = { PATH: process.env['PATH'], CERBOS_PORT: `${port}`, CERBOS_GRPC_PORT: `${grpcPort}` };
  const cerbos = startProgram(program, ['server', '--config=cerbos.yaml'], { cwd: folder, env });
  await cerbos.answers(`${url}/_cerbos/health`);
  provider = await startTrustedProvider();
  const decisions = { AUTH_DECISION_URL: url, AUTH_DECISION_CLAIMS: 'tenant' };
  gateway = await startTestGateway({ ...provider.env, ...decisions, MAX_REPRESENTATIONS: '200' });
}, 180_000);

it('Cerbos decides by its policy: one taxpayer, two hundred entities beside sixty aliases, and no access token', async () => {
  const scope = 'taxpayers:read taxpayer-tokens:read refresh-jobs:read';
  const headers = { authorization: `Bearer ${await provider.token({ scope, tenant: 'acme' })}` };
  const mine = times(260, (n) => `acme-${n}`);
  for (const id of [...mine.slice(0, 60), 'other-1']) gateway.sandbox.addTaxpayer({ id, name: `Name of ${id}` });
  const ask = (query: string, variables = {}): Promise<Answer<Record<string, unknown>>> =>
    gateway.query(query, variables, headers);

  const allowed = await ask('{ taxpayerToken(taxpayerId: "acme-1") { name } }');
  expect(allowed).toMatchObject({ data: { taxpayerToken: { name: 'Name of acme-1' } } });
  const refused = await ask('{ taxpayerToken(taxpayerId: "other-1") { name } }');
  expect(refused.errors).toMatchObject([{ path: ['taxpayerToken'], extensions: { code: 'FORBIDDEN' } }]);
  const inPart = await ask('{ taxpayerToken(taxpayerId: "acme-2") { name accessToken } }');
  expect(inPart.data).toEqual({ taxpayerToken: { name: 'Name of acme-2', accessToken: null } });
  expect(inPart.errors).toMatchObject([{ path: ['taxpayerToken', 'accessToken'], extensions: { code: 'FORBIDDEN' } }]);
  const aliases = mine
    .slice(0, 59)
    .map((id, n) => `a${n}: taxpayerToken(taxpayerId: "${id}") { name }`)
    .join(' ');
  const entities = `query($r: [_Any!]!) { ${aliases} _entities(representations: $r) { ... on Taxpayer { id } } }`;
  const r = [...mine.slice(61), 'other-1'].map((id) => ({ __typename: 'Taxpayer', id }));
  expect((await ask(entities, { r })).errors).toMatchObject([{ path: ['_entities', 199] }]);
});
