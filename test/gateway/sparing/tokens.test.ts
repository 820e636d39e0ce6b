import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';

const tokenQuery = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status name stale } }';
const jobQuery = 'query ($id: ID!, $job: ID!) { refreshJob(taxpayerId: $id, jobId: $job) { status } }';

describe('tokens in one process', () => {
  let test: TestGateway;
  beforeEach(async () => {
    test = await startTestGateway();
  });
  afterEach(() => test.stop());

  it('asks the service once for 200 concurrent queries of one taxpayer', async () => {
    const id = test.sandbox.demo.taxpayerIds.authorized;
    const answers = await Promise.all(Array.from({ length: 200 }, () => test.query(tokenQuery, { id })));
    for (const { data, errors } of answers) {
      expect(errors).toBeUndefined();
      expect(data).toMatchObject({ taxpayerToken: { status: 'AUTHORIZED', stale: false } });
    }
    expect(test.sandbox.control.tokenCalls(id)).toBe(1);
  });

  it('answers a job query whose token was rotated, with exactly one more token call', async () => {
    const { taxpayerId: id, jobId: job } = test.sandbox.demo.jobs.failed;
    await test.query(tokenQuery, { id });
    test.sandbox.control.rotateToken(id);
    const { data } = await test.query(jobQuery, { id, job });
    expect(data).toEqual({ refreshJob: { status: 'FAILED' } });
    expect(test.sandbox.control.tokenCalls(id)).toBe(2);
  });

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
