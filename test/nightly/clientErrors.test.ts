import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type ErrorCode,
  errorCodeOf,
  isRetryable,
  problemsOf,
  retryAfterSeconds,
  TaxpayerTokenDocument,
} from '../../packages/client/src/index.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

const { ApolloClient, HttpLink, InMemoryCache } = await import('@apollo/client');
const { Client, fetchExchange } = await import('@urql/core');

let running: TestGateway;
let url: string;
beforeEach(async () => {
  running = await startTestGateway({ TOKEN_BUDGET_PER_HOUR: '1' });
  url = `${running.origin}/graphql`;
});
afterEach(() => running.stop());

describe('Errors as the typed client reads them', () => {
  /** The first call uses up the token budget, the second is refused by it. */
  const exhausted: Record<string, (taxpayerId: string) => Promise<unknown>> = {
    'Apollo Client': async (taxpayerId) => {
      const client = new ApolloClient({ link: new HttpLink({ uri: url }), cache: new InMemoryCache() });
      return client.query({ query: TaxpayerTokenDocument, variables: { taxpayerId } }).then(
        () => undefined,
        (error: unknown) => error,
      );
    },
    urql: async (taxpayerId) => {
      const client = new Client({ url, exchanges: [fetchExchange], preferGetMethod: false });
      return (await client.query(TaxpayerTokenDocument, { taxpayerId }).toPromise()).error;
    },
  };

  it.each(Object.keys(exhausted))('have code, retryability and time with %s', async (name) => {
    const { created, authorized } = running.sandbox.demo.taxpayerIds;
    const first = await exhausted[name]?.(created);
    expect(problemsOf(first)).toEqual([]);
    const error = await exhausted[name]?.(authorized);
    const code: ErrorCode | undefined = errorCodeOf(error);
    expect(code).toBe('TOKEN_BUDGET_EXHAUSTED');
    expect(isRetryable(error)).toBe(true);
    expect(retryAfterSeconds(error)).toBeGreaterThan(0);
    expect(problemsOf(error)[0]).toMatchObject({ path: ['taxpayerToken'], requestId: expect.any(String) });
  });
});
