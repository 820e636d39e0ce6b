import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { post, quickPolls, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { addJob, update, watchJob } from '../../support/liveJob.js';
import { streamReader } from '../../support/streamReader.js';
import { transports } from '../../support/transports.js';

const gateway = await startTestGateway(quickPolls);

function ask({ origin }: TestGateway, accept: string, body: object) {
  return post(`${origin}/graphql`, body, { accept });
}

describe('a multipart subscription', () => {
  const accept = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json';

  it('brings each change as a part', async () => {
    const job = addJob(gateway);
    const response = await ask(gateway, accept, { query: watchJob, variables: job });
    expect(response.headers.get('content-type')).toBe('multipart/mixed;boundary="graphql";subscriptionSpec="1.0"');
    const parts = streamReader(response);
    const nextPart = async () => JSON.parse((await parts.next('\r\n--graphql'))?.split('\r\n\r\n')[1] ?? '');
    expect(await parts.next('--graphql')).toBe('\r\n');
    expect(await nextPart()).toEqual({ payload: update(job.jobId, 'PROCESSING') });
    gateway.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    expect(await nextPart()).toEqual({ payload: update(job.jobId, 'COMPLETED') });
    expect(await parts.next('\r\n')).toBe('--');
    expect(await parts.next('\r\n')).toBeUndefined();
  });

  it('that is refused is answered with JSON, if the client takes that', async () => {
    const { headers } = await ask(gateway, accept, { query: 'subscription { nothing }' });
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  it('is the form of an answer to a query, too, for a client that takes no JSON', async () => {
    const part = 'content-type: application/json\r\n\r\n{"payload":{"data":{"__typename":"Query"}}}';
    const answer = await transports.multipart(gateway, '{"query":"{ __typename }"}');
    expect(answer).toBe(`\r\n--graphql\r\n${part}\r\n--graphql--\r\n`);
  });
});

describe('While the gateway drains', () => {
  // A stream that is cut because the gateway drains has not ended, so it must not be told that it is complete.

  const start = () => startTestGateway({ ...quickPolls, DRAIN_TIMEOUT_MS: '2000' });

  it.each(['text/event-stream', 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0'])(
    'a %s whose body comes after the gateway has begun to drain is refused, and not called complete',
    async (accept) => {
      const gateway = await start();
      const body = JSON.stringify({ query: watchJob, variables: addJob(gateway) });
      const headers = { accept, 'content-type': 'application/json', expect: '100-continue' };
      const sent = httpRequest(`${gateway.origin}/graphql`, { method: 'POST', headers });
      const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
      sent.flushHeaders();
      await once(sent, 'continue'); // the request is admitted
      const stopped = gateway.stop();
      sent.end(body);
      const [response] = await answered;
      const { statusCode, headers: sentBack } = response;
      expect([statusCode, sentBack['retry-after'], await text(response)]).toEqual([
        503,
        '1',
        expect.stringContaining('"code":"SHUTTING_DOWN"'),
      ]);
      await stopped;
    },
  );

  it('a multipart subscription that is running when the gateway begins to drain is told why it ends', async () => {
    const gateway = await start();
    const body = { query: watchJob, variables: addJob(gateway) };
    const response = await ask(gateway, 'multipart/mixed;subscriptionSpec=1.0', body);
    const parts = streamReader(response);
    for (let n = 0; n < 2; n += 1) await parts.next('--graphql');
    const stopped = gateway.stop();
    const last = await parts.next('--graphql');
    expect(last).toContain('"code":"SHUTTING_DOWN"');
    expect(last).toContain(`"requestId":"${response.headers.get('x-request-id')}"`);
    expect(await parts.next('--graphql')).toBe('--\r\n');
    await stopped;
  });
});
