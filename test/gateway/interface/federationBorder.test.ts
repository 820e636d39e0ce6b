import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

const directory = scratch();
const sdl = '{ _service { sdl } }';
let gateway: TestGateway | undefined;
let provider: TrustedProvider | undefined;

async function codesFor(secret: string | undefined, query = sdl): Promise<string[]> {
  const headers = secret === undefined ? {} : { 'x-gateway-router-secret': secret };
  const answer = await gateway?.query(query, {}, headers);
  return (answer?.errors ?? []).map(({ extensions }) => extensions.code);
}

describe('the border to the router', () => {
  test('_service and _entities answer a router that presents one of the secrets, and nobody else', async () => {
    gateway = await startTestGateway({
      FEDERATION_SHARED_SECRET: 'the-current-secret, the-previous-secret',
    });
    const entities = '{ _entities(representations: [{ __typename: "Taxpayer", id: "x" }]) { __typename } }';
    for (const query of [sdl, entities]) {
      expect(await codesFor('the-current-secret', query)).toEqual([]);
      expect(await codesFor('the-previous-secret', query)).toEqual([]);
      for (const wrong of [
        undefined,
        '',
        'the-current-secre',
        'the-current-secret2',
        'THE-CURRENT-SECRET',
        'the-current-secret, the-previous-secret',
      ]) {
        expect(await codesFor(wrong, query)).toEqual(['FORBIDDEN']);
      }
    }
    expect(await codesFor(undefined, '{ __typename }')).toEqual([]);
  });

  test('a secret in a file is read again when it changes: a rotation needs no restart', async () => {
    const file = join(directory, 'secrets');
    const [zero, one, two] = ['secret-number-zero-0', 'secret-number-one-1', 'secret-number-two-22'];
    writeFileSync(file, `${zero}\n`);
    gateway = await startTestGateway({ FEDERATION_SHARED_SECRET_FILE: file });
    expect(await codesFor(zero)).toEqual([]);
    writeFileSync(file, `${one}\n${zero}\n`);
    await until(async () => (await codesFor(one)).length === 0);
    expect(await codesFor(zero)).toEqual([]);
    writeFileSync(file, `${one},${two}`);
    await until(async () => (await codesFor(zero)).length > 0);
    for (const unusable of ['short', '']) {
      const before = gateway.logs.length;
      writeFileSync(file, unusable);
      await until(() => gateway?.logs.slice(before).some((line) => line.includes('cannot be used')) === true);
      expect(await codesFor('short')).toEqual(['FORBIDDEN']);
      for (const used of [one, two]) expect(await codesFor(used)).toEqual([]);
    }
    expect(gateway.logs.join('')).not.toMatch(/secret-number/);
  });

  test('a router reads the schema without a user’s token, also with introspection off, and no taxpayer', async () => {
    provider = await startTrustedProvider();
    gateway = await startTestGateway({
      NODE_ENV: 'production',
      FEDERATION_SHARED_SECRET: 'the-current-secret',
      ...provider.env,
    });
    const secret = 'the-current-secret';
    expect(await codesFor(secret)).toEqual([]);
    expect(await codesFor('something-else-here')).toEqual(['UNAUTHENTICATED']);
    expect(await codesFor(secret, '{ taxpayer(id: "x") { id } }')).toEqual(['UNAUTHENTICATED']);
    const withToken = { 'x-gateway-router-secret': secret, authorization: 'Bearer' };
    const { errors } = await gateway.query(sdl, {}, withToken); // it passes on a caller's, which is none
    expect(errors?.[0]?.extensions.code).toBe('UNAUTHENTICATED');
    expect(await codesFor(secret, '{ __schema { queryType { name } } }')).toEqual(['GRAPHQL_VALIDATION_FAILED']);
  });
});

describe('introspection', () => {
  const questions = ['{ __schema { queryType { name } } }', '{ __type(name: "Taxpayer") { name } }'];
  const misspelled = '{ taxpayerTokn(taxpayerId: "x") { name } }';

  test('is off in production, with the explorers and the suggestions', async () => {
    gateway = await startTestGateway({ NODE_ENV: 'production' });
    for (const query of questions) expect(await codesFor(undefined, query)).toContain('GRAPHQL_VALIDATION_FAILED');
    expect((await gateway.query(misspelled)).errors?.[0]?.message).not.toContain('Did you mean');
    for (const path of ['/', '/graphiql']) expect((await fetch(gateway.origin + path)).status).toBe(404);
  });

  test('is on in production when INTROSPECTION=true asks for it', async () => {
    gateway = await startTestGateway({ NODE_ENV: 'production', INTROSPECTION: 'true' });
    for (const query of questions) expect(await codesFor(undefined, query)).toEqual([]);
    expect((await gateway.query(misspelled)).errors?.[0]?.message).toContain('Did you mean');
    expect((await fetch(`${gateway.origin}/graphiql/options`)).status).toBe(200);
  });
});
