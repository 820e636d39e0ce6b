import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { codesOf, startTestGateway, startTrustedProvider, type TestGateway } from '../../support/gateway.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

const sdl = '{ _service { sdl } }';
const entities = '{ _entities(representations: [{ __typename: "Taxpayer", id: "x" }]) { __typename } }';
const introspection = '{ __schema { queryType { name } } }';

async function codesFor(gateway: TestGateway, secret: string, query = sdl) {
  return codesOf(await gateway.query(query, {}, { 'x-gateway-router-secret': secret }));
}

describe('the border to the router', () => {
  test('_service and _entities answer a router that presents one of the secrets, and nobody else', async () => {
    const gateway = await startTestGateway({ FEDERATION_SHARED_SECRET: 'the-current-secret, the-previous-secret' });
    const wrong = ['', 'the-current-secre', 'the-current-secret2', 'THE-CURRENT-SECRET'];
    for (const query of [sdl, entities]) {
      for (const right of ['the-current-secret', 'the-previous-secret']) {
        expect(await codesFor(gateway, right, query)).toEqual([]);
      }
      for (const secret of [...wrong, 'the-current-secret, the-previous-secret']) {
        expect(await codesFor(gateway, secret, query)).toEqual(['FORBIDDEN']);
      }
      expect(codesOf(await gateway.query(query))).toEqual(['FORBIDDEN']);
    }
    expect(codesOf(await gateway.query('{ __typename }'))).toEqual([]);
    expect(gateway.output()).toContain('not the router');
  });

  test('a secret in a file is read again when it changes: a rotation needs no restart', async () => {
    const file = join(scratch(), 'secrets');
    const [zero, one, two] = ['secret-number-zero-0', 'secret-number-one-1', 'secret-number-two-22'];
    writeFileSync(file, `${zero}\n`);
    const gateway = await startTestGateway({ FEDERATION_SHARED_SECRET_FILE: file });
    expect(await codesFor(gateway, zero)).toEqual([]);
    writeFileSync(file, `${one}\n${zero}\n`);
    await until(async () => (await codesFor(gateway, one)).length === 0);
    expect(await codesFor(gateway, zero)).toEqual([]);
    writeFileSync(file, `${one},${two}`);
    await until(async () => (await codesFor(gateway, zero)).length > 0);
    for (const unusable of ['short', '']) {
      const before = gateway.logs.length;
      writeFileSync(file, unusable);
      await until(() => gateway.logs.slice(before).some((line) => line.includes('cannot be used')));
      expect(await codesFor(gateway, 'short')).toEqual(['FORBIDDEN']);
      for (const used of [one, two]) expect(await codesFor(gateway, used)).toEqual([]);
    }
    expect(gateway.output()).not.toMatch(/secret-number/);
  });

  test('a router reads the schema without a user’s token, also with introspection off, but a taxpayer only with one, which may be for jobs alone', async () => {
    const secret = 'the-current-secret';
    const { env, watcherOf } = await startTrustedProvider();
    const gateway = await startTestGateway({ ...env, NODE_ENV: 'production', FEDERATION_SHARED_SECRET: secret });
    expect(await codesFor(gateway, secret)).toEqual([]);
    expect(await codesFor(gateway, 'something-else-here')).toEqual(['UNAUTHENTICATED']);
    expect(await codesFor(gateway, secret, '{ taxpayer(id: "x") { id } }')).toEqual(['UNAUTHENTICATED']);
    // A router passes on the header of its caller, which here holds no token.
    const withToken = { 'x-gateway-router-secret': secret, authorization: 'Bearer' };
    expect(codesOf(await gateway.query(sdl, {}, withToken))).toEqual(['UNAUTHENTICATED']);
    const forJobs = { ...withToken, authorization: await watcherOf(['x'], 300, 'refresh-jobs:read') };
    expect(codesOf(await gateway.query(entities, {}, forJobs))).toEqual([]);
    expect(await codesFor(gateway, secret, introspection)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
  });
});

test.each([
  ['off', {}, false],
  ['on when INTROSPECTION=true asks for it', { INTROSPECTION: 'true' }, true],
])('introspection, suggestions and explorers are %s in production', async (_, env, isOn) => {
  const { query, origin } = await startTestGateway({ NODE_ENV: 'production', ...env });
  for (const question of [introspection, '{ __type(name: "Taxpayer") { name } }']) {
    expect(codesOf(await query(question))[0]).toBe(isOn ? undefined : 'GRAPHQL_VALIDATION_FAILED');
  }
  const { errors } = await query('{ taxpayerTokn(taxpayerId: "x") { name } }');
  expect(errors?.[0]?.message.includes('Did you mean')).toBe(isOn);
  const statusOf = async (path: string) => (await fetch(origin + path)).status;
  expect(await statusOf('/graphiql/options')).toBe(isOn ? 200 : 404);
  expect((await statusOf('/')) === 404).toBe(!isOn); // where it is on, this page needs a build
});
