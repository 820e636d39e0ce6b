import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';

const tokenQuery = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status name stale } }';
const jobQuery = 'query ($id: ID!, $job: ID!) { refreshJob(taxpayerId: $id, jobId: $job) { status } }';

describe('The token of a record', () => {
  let test: TestGateway;
  beforeEach(async () => {
    test = await startTestGateway();
  });
  afterEach(() => test.stop());

  it('takes a token of 16,000 characters, and none that no header can hold', async () => {
    const { control } = test.sandbox;
    const { id } = control.addTaxpayer({ status: 'AUTHORIZED', accessToken: 't'.repeat(16_000) });
    const { jobId: job } = control.addJob({ taxpayerId: id, endsAs: null });
    expect(await test.query(jobQuery, { id, job })).toMatchObject({ data: { refreshJob: { status: 'PROCESSING' } } });
    for (const accessToken of ['t'.repeat(16_001), 't'.repeat(1_000_000), 'with space', 'tök', '']) {
      const { id: other } = control.addTaxpayer({ status: 'AUTHORIZED', accessToken });
      for (const read of [
        () => test.query(tokenQuery, { id: other }),
        () => test.query(jobQuery, { id: other, job }),
      ]) {
        expect((await read()).errors).toMatchObject([{ extensions: { code: 'UPSTREAM_INVALID_RESPONSE' } }]);
      }
    }
    expect(control.counters().refreshJob).toBe(1);
  });
});
