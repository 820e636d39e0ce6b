import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { addJob, quickPolls, update, watchJob } from '../../support/liveJob.js';
import { streamReader } from '../../support/streamReader.js';

function ask({ origin }: TestGateway, accept: string, body: object) {
  return fetch(`${origin}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept },
    body: JSON.stringify(body),
  });
}

describe('a multipart subscription', () => {
  let gateway: TestGateway;
  const accept = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json';

  beforeAll(async () => {
    gateway = await startTestGateway(quickPolls);
  });

  afterAll(() => gateway.stop());

  it('brings each change as a part', async () => {
    const job = addJob(gateway);
    const response = await ask(gateway, accept, { query: watchJob, variables: job });
    expect(response.headers.get('content-type')).toBe('multipart/mixed;boundary="graphql";subscriptionSpec="1.0"');
    const parts = streamReader(response);
    const nextPart = async () => JSON.parse((await parts.next('\r\n--graphql'))?.split('\r\n\r\n')[1] ?? '');
    expect(await parts.next('--graphql')).toBe('\r\n');
    expect(await nextPart()).toEqual({ payload: update(job.jobId, 'PROCESSING') });
    gateway.sandbox.control.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    expect(await nextPart()).toEqual({ payload: update(job.jobId, 'COMPLETED') });
    expect(await parts.next('\r\n')).toBe('--');
    expect(await parts.next('\r\n')).toBeUndefined();
  });

  it.each(['{ nothing }', '{ __typename }', 'subscription { nothing }'])(
    'is the form of %s only for a client that takes no JSON',
    async (query) => {
      const expected = /"code":"GRAPHQL_VALIDATION_FAILED"|"__typename":"Query"/;
      const parts = streamReader(await ask(gateway, accept.replace(',application/json', ''), { query }));
      await parts.next('--graphql');
      expect(await parts.next('--graphql')).toMatch(expected);
      const response = await ask(gateway, accept, { query });
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(await response.text()).toMatch(expected);
    },
  );

  it('that is refused is told of it in the same form', async () => {
    const query = 'subscription { refreshJobUpdated(taxpayerId: "..", jobId: "1") { status } }';
    const parts = streamReader(await ask(gateway, accept, { query }));
    await parts.next('--graphql');
    expect(await parts.next('--graphql')).toContain('"code":"BAD_USER_INPUT"');
  });
});
