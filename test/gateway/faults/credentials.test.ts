import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

let directory: string;
let file: string;
let gateway: TestGateway;
beforeEach(async () => {
  directory = scratch();
  file = join(directory, 'client-secret');
  writeFileSync(file, 'test-secret\n');
  gateway = await startTestGateway({
    UPSTREAM_CLIENT_SECRET: '',
    UPSTREAM_CLIENT_SECRET_FILE: file,
    RATE_LIMIT_PER_MINUTE: '0',
  });
});
afterEach(async () => {
  await gateway.stop();
});

describe('Client credentials that the service refuses', () => {
  it('are told apart from a fault of the caller, stop all calls with them, and recover when the secret is replaced', async () => {
    const { control } = gateway.sandbox;
    control.setClientSecret('rotated-secret');
    const read = () =>
      gateway.query('query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id: taxpayerId });
    const create = () => gateway.query('mutation { createClientLink(input: {}) { replayed } }');
    const { id: taxpayerId } = control.addTaxpayer();
    for (const ask of [read, create, read, create]) {
      expect(await ask()).toMatchObject({
        status: 200,
        errors: [{ extensions: { code: 'UPSTREAM_CREDENTIALS_REJECTED', retryable: false } }],
      });
    }
    expect(control.counters()).toMatchObject({ taxpayerToken: 1, createClientLink: 0 });

    writeFileSync(file, 'rotated-secret\n');
    while (!gateway.logs.some((line) => line.includes('a changed file was read again'))) await read();
    expect((await read()).errors).toBeUndefined();
    expect((await create()).errors).toBeUndefined();
    expect(control.counters()).toMatchObject({ taxpayerToken: 2, createClientLink: 1 });
    expect(gateway.logs.join('')).not.toMatch(/rotated-secret|test-secret/);
  });

  it('give entries other names when the secret is replaced: what memory holds by the old ones, which forget would miss, goes', async () => {
    const { control } = gateway.sandbox;
    const { id } = control.addTaxpayer();
    const read = () => gateway.query('query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id });
    for (const _ of ['fetched', 'from memory']) expect((await read()).errors).toBeUndefined();
    control.setClientSecret('rotated-secret');
    writeFileSync(file, 'rotated-secret\n');
    await until(() => gateway.logs.some((line) => line.includes('a changed file was read again')));
    expect((await read()).errors).toBeUndefined();
    expect(control.tokenCalls(id)).toBe(2);
  });

  it.each([
    ['emptied', '\n'],
    ['filled with several lines', 'rotated-secret\ntest-secret\n'],
  ])('stay as they are when the file is %s by mistake, and the log says so', async (_, content) => {
    writeFileSync(file, content);
    const { id } = gateway.sandbox.control.addTaxpayer();
    while (!gateway.logs.some((line) => line.includes('a changed file cannot be used'))) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const { errors } = await gateway.query('query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id });
    expect(errors).toBeUndefined();
  });
});
