import { type DocumentNode, parse, print } from 'graphql';
import { problemsOf, retryAfterSeconds } from '../../packages/client/src/index.js';
import { startTestGateway, startTrustedProvider } from '../support/gateway.js';

const apollo4 = await import('@apollo/client');
const apollo3 = await import('apollo-client-3/core');
const { Client: UrqlClient, fetchExchange } = await import('@urql/core');
const { GraphQLClient } = await import('graphql-request');

const taxpayerId = '44444444-4444-4444-8444-444444444444';

const provider = await startTrustedProvider();
const gateway = await startTestGateway(provider.env);
/** Where one operation per minute is allowed. */
const narrow = await startTestGateway({ ...provider.env, RATE_LIMIT_PER_MINUTE: '1' });
const authorization = await provider.watcherOf([taxpayerId]);

interface Asked {
  readonly query: DocumentNode;
  readonly variables: Record<string, unknown>;
  readonly headers: Record<string, string>;
  readonly fetch: typeof fetch;
}
/** What a client makes of an answer: data, or what it throws or hands out as errors. */
type Ask = (asked: Asked, url: string) => Promise<{ readonly data?: unknown; readonly failure?: unknown }>;

const thrown = (failure: unknown) => ({ failure });
const withError = ({ data, error }: { data?: unknown; error?: unknown }) => ({ data, failure: error });
const withErrors = ({ data, errors }: { data?: unknown; errors?: unknown }) => ({ data, failure: errors });

const clients: Readonly<Record<string, { readonly acceptsResponseJson: boolean; readonly ask: Ask }>> = {
  'Apollo Client 4': {
    acceptsResponseJson: true,
    ask: ({ query, variables, ...options }, uri) => {
      const link = new apollo4.HttpLink({ uri, ...options });
      const client = new apollo4.ApolloClient({ link, cache: new apollo4.InMemoryCache() });
      return client.query({ query, variables, errorPolicy: 'all' }).then(withError, thrown);
    },
  },
  'Apollo Client 3': {
    acceptsResponseJson: false,
    ask: ({ query, variables, ...options }, uri) => {
      const link = new apollo3.HttpLink({ uri, ...options });
      const client = new apollo3.ApolloClient({ link, cache: new apollo3.InMemoryCache() });
      return client.query({ query, variables, errorPolicy: 'all' }).then(withErrors, thrown);
    },
  },
  urql: {
    acceptsResponseJson: true,
    ask: async ({ query, variables, headers, fetch }, url) => {
      const exchanges = [fetchExchange];
      const client = new UrqlClient({ url, fetch, fetchOptions: { headers }, exchanges, preferGetMethod: false });
      return withError(await client.query(query, variables).toPromise());
    },
  },
  'graphql-request': {
    acceptsResponseJson: true,
    ask: ({ query, variables, headers, fetch }, url) =>
      new GraphQLClient(url, { headers, fetch, errorPolicy: 'all' })
        .rawRequest(print(query), variables)
        .then(withErrors, thrown),
  },
};

describe.each(Object.entries(clients))('%s', (_, { acceptsResponseJson, ask }) => {
  async function attempt(query: string, id: unknown, headers: Record<string, string>, { origin } = gateway) {
    const statuses: number[] = [];
    const noted: typeof fetch = async (...request) => {
      const response = await fetch(...request);
      statuses.push(response.status);
      return response;
    };
    const asked = { query: parse(query), variables: { id }, headers, fetch: noted };
    const { data, failure } = await ask(asked, `${origin}/graphql`);
    const codes = problemsOf(failure).map(({ code }) => code);
    return { status: statuses.at(-1), data: data ?? null, codes, failure };
  }
  async function beyondTheLimit(): ReturnType<typeof attempt> {
    for (;;) {
      const found = await attempt(readStatus, taxpayerId, { authorization }, narrow);
      if (found.status !== 200) return found; // the first of a minute is answered
    }
  }
  const readStatus = 'query Token($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
  const readAccessToken = 'query Token($id: ID!) { taxpayerToken(taxpayerId: $id) { status accessToken } }';
  const notValid = 'query Token($id: ID!) { taxpayerToken(taxpayerId: $id) { nothing } }';

  it('reads data with errors', async () => {
    const { data, codes, status } = await attempt(readAccessToken, taxpayerId, { authorization });
    expect(status).toBe(acceptsResponseJson ? 294 : 200);
    expect(codes).toEqual(['FORBIDDEN']);
    expect(data).toMatchObject({ taxpayerToken: { status: 'AUTHORIZED', accessToken: null } });
  });

  it.each([
    ['a document that is not valid', notValid, 'x', 'GRAPHQL_VALIDATION_FAILED'],
    ['a variable that does not fit', readStatus, { not: 'an id' }, 'BAD_USER_INPUT'],
  ])('reads the refusal of %s', async (_, query, id, code) => {
    const { data, codes, status } = await attempt(query, id, { authorization });
    expect({ data, status, code: codes[0] }).toEqual({ data: null, status: acceptsResponseJson ? 422 : 400, code });
  });

  it('reads the refusal of a caller without a token', async () => {
    const found = await attempt(readStatus, taxpayerId, {});
    expect(found).toMatchObject({ status: 401, data: null, codes: ['UNAUTHENTICATED'] });
  });

  it('reads the refusal of a caller who asks too often, and how long to wait', async () => {
    const found = await beyondTheLimit();
    expect(found).toMatchObject({ status: 429, data: null, codes: ['RATE_LIMITED'] });
    expect(retryAfterSeconds(found.failure)).toBeGreaterThan(0);
  });
});
