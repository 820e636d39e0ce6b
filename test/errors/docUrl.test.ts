import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { problemsOf } from '../../packages/client/src/index.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { transports } from '../support/transports.js';

const linkOf = (code: string) => `https://docs.example/gateway/errors.md#${code.toLowerCase()}`;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ DOCS_URL: 'https://docs.example/gateway/' });
});
afterAll(() => gateway.stop());

describe('With DOCS_URL an error links the section of its code', () => {
  it.each(Object.entries(transports))('over %s', async (_, send) => {
    const ofField = await send(gateway, '{"query":"{ taxpayerToken(taxpayerId: \\"nobody\\") { status } }"}');
    expect(ofField).toContain(`"docUrl":"${linkOf('NOT_FOUND')}"`);
    const refused = await send(gateway, '{"query":"{ nothing }"}');
    expect(refused).toContain(`"docUrl":"${linkOf('GRAPHQL_VALIDATION_FAILED')}"`);
  });

  it('also where the refusal is written from memory, with the id of the request', async () => {
    for (const requestId of ['first', 'second']) {
      const headers = { 'content-type': 'text/plain', 'x-request-id': requestId };
      const { errors } = await gateway.query('{ __typename }', {}, headers);
      expect(errors).toMatchObject([{ extensions: { requestId, docUrl: linkOf('BAD_USER_INPUT') } }]);
    }
  });

  it('which the typed client reads', async () => {
    expect(problemsOf(await gateway.query('{'))).toMatchObject([{ docUrl: linkOf('GRAPHQL_PARSE_FAILED') }]);
  });
});
