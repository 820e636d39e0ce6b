import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

let file: string;
let gateway: TestGateway;
beforeEach(async () => {
  file = join(scratch(), 'client-secret');
  writeFileSync(file, 'test-secret\n');
  gateway = await startTestGateway({ UPSTREAM_CLIENT_SECRET: '', UPSTREAM_CLIENT_SECRET_FILE: file });
});

const read = (id: string) => gateway.query('query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id });

/** Replaces the secret in the file; resolves when the gateway uses it. */
async function renew() {
  writeFileSync(file, 'rotated-secret\n');
  await until(() => gateway.output().includes('a changed file was read again'));
}

it('Client credentials that the service refuses are told apart from a fault of the caller, stop all calls with them, and recover when the secret is replaced', async () => {
  const { sandbox } = gateway;
  const { id } = sandbox.addTaxpayer();
  sandbox.setClientSecret('rotated-secret');
  const create = () => gateway.query('mutation { createClientLink(input: {}) { replayed } }');
  for (const ask of [read, create, read, create]) {
    expect(await ask(id)).toMatchObject({
      status: 200,
      errors: [{ extensions: { code: 'UPSTREAM_CREDENTIALS_REJECTED', retryable: false } }],
    });
  }
  expect(sandbox.counters()).toMatchObject({ taxpayerToken: 1, createClientLink: 0 });

  await renew();
  for (const ask of [read, create]) expect((await ask(id)).errors).toBeUndefined();
  expect(sandbox.counters()).toMatchObject({ taxpayerToken: 2, createClientLink: 1 });
  expect(gateway.output()).not.toMatch(/rotated-secret|test-secret/);
});

it('Entries have other names once the secret is replaced; memory drops those under the old names, which `forget` would miss', async () => {
  const { sandbox } = gateway;
  const { id } = sandbox.addTaxpayer();
  for (const _ of ['fetched', 'from memory']) expect((await read(id)).errors).toBeUndefined();
  sandbox.setClientSecret('rotated-secret');
  await renew();
  expect((await read(id)).errors).toBeUndefined();
  expect(sandbox.tokenCalls(id)).toBe(2);
});
