import { jest } from '@jest/globals';
import { TokenBroker } from '../../../src/datasources/TokenBroker.js';
import { linesWith, startTestGateway } from '../../support/gateway.js';
import { transports } from '../../support/transports.js';
import { until } from '../../support/until.js';

const planted = 'planted-in-a-bug';
const query = '{ taxpayerToken(taxpayerId: "one") { providerId status } __typename }';

/** Bugs of every kind. No fault of the service and nothing a caller sends is known to cause one, so they are planted. */
const bugs: Readonly<Record<string, () => unknown>> = {
  throws: () => {
    throw new Error(planted, { cause: new Error(planted) });
  },
  'rejects with no error at all': () => Promise.reject(planted),
  'lacks what it promised': () => ({ value: { record: {} } }),
};
function plant(bug: string) {
  jest.spyOn(TokenBroker.prototype, 'record').mockImplementation(bugs[bug] as never);
}

const gateway = await startTestGateway();
afterEach(() => {
  jest.restoreAllMocks();
});

describe('A bug of the gateway', () => {
  it.each(Object.keys(bugs))('that %s is masked and logged once', async (bug) => {
    plant(bug);
    const logged = gateway.logs.length;
    const requestId = 'the-request';
    const answer = await gateway.query(query, {}, { 'x-request-id': requestId });
    // The other fields keep their values. Only a plan that has no value for a field that is never null gives no data at all.
    const isNull = bug === 'lacks what it promised';
    expect(answer).toMatchObject({ status: 200, data: isNull ? null : { taxpayerToken: null, __typename: 'Query' } });
    expect(answer.errors).toEqual([
      {
        message: 'Something went wrong in the gateway; its log has the request id',
        locations: expect.any(Array),
        path: expect.any(Array),
        extensions: { code: 'INTERNAL_SERVER_ERROR', retryable: false, requestId },
      },
    ]);
    expect(linesWith(gateway.logs.slice(logged), { level: 'error' })).toMatchObject([{ requestId }]);
    expect(gateway.output()).not.toContain(planted);
  });

  it.each(Object.entries(transports))('is found in the log by its request id, over %s', async (_, send) => {
    plant('throws');
    const answer = await send(gateway, JSON.stringify({ query }));
    expect(answer).toContain('"code":"INTERNAL_SERVER_ERROR"');
    const requestId = /"requestId":"([^"]+)"/.exec(answer)?.[1];
    const linesOf = (msg: string) => linesWith(gateway.logs, { requestId, msg });
    await until(() => linesOf('operation').length > 0);
    const caller = expect.stringMatching(/^[\w-]{43}$/);
    const failed = { codes: ['INTERNAL_SERVER_ERROR'], caller, cause: 'Error', outcome: 'failed' };
    expect(linesOf('operation')).toMatchObject([failed]);
    expect(linesOf('a bug of the gateway')).toHaveLength(1);
    expect(gateway.output()).not.toContain(planted);
  });
});
