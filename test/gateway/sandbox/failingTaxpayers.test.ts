import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ UPSTREAM_TIMEOUT_MS: '100', UPSTREAM_DEADLINE_MS: '300' });
});
afterAll(() => gateway.stop());

it.each([
  ['unavailable', 'UPSTREAM_UNAVAILABLE'],
  ['slow', 'UPSTREAM_TIMEOUT'],
  ['refusedToken', 'TAXPAYER_NOT_AUTHORIZED'],
  // Last: it pauses the calls for everybody.
  ['rateLimited', 'UPSTREAM_RATE_LIMITED'],
] as const)('the demo taxpayer %s gets %s', async (name, code) => {
  const id = gateway.sandbox.demo.taxpayerIds[name];
  const { errors } = await gateway.query(`{ refreshJob(taxpayerId: "${id}", jobId: "any") { status } }`);
  expect(errors?.map(({ extensions }) => extensions)).toMatchObject([{ code }]);
});
