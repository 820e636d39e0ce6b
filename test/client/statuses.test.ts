import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DocumentNode, parse, print } from 'graphql';
import { problemsOf } from '../../src/client/index.js';
import { startTrustedProvider, type TrustedProvider } from '../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

const apollo4 = await import('@apollo/client');
const { PersistedQueryLink } = await import('@apollo/client/link/persisted-queries');
const apollo3 = await import('apollo-client-3/core');
const { Client: UrqlClient, fetchExchange } = await import('@urql/core');
const { GraphQLClient } = await import('graphql-request');
const { Environment, fetchQuery, Network, RecordSource, Store } = (await import('relay-runtime')).default;

const taxpayerId = '44444444-4444-4444-8444-444444444444';
let provider: TrustedProvider;
let gateway: TestGateway;
let authorization: string;

beforeAll(async () => {
  provider = await startTrustedProvider();
  gateway = await startTestGateway(provider.env);
  authorization = await provider.watcherOf([taxpayerId]);
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

interface Asked {
  readonly query: DocumentNode;
  readonly variables: Record<string, unknown>;
  readonly headers: Record<string, string>;
  readonly fetch: typeof fetch;
}
/** What a client makes of an answer: data, or what it throws or hands out as errors. */
type Ask = (asked: Asked, url: string) => Promise<{ readonly data?: unknown; readonly failure?: unknown }>;

const thrown = (failure: unknown) => ({ failure });
const read = ({ data, error }: { data?: unknown; error?: unknown }) => ({ data, failure: error });

/** A document for Relay, as its compiler writes one for a single field with one subfield. */
function relayRequest(query: DocumentNode) {
  const text = print(query);
  const selections = [
    {
      kind: 'LinkedField',
      ...{ alias: null, name: 'taxpayerToken', storageKey: null, concreteType: 'TaxpayerToken', plural: false },
      args: [{ kind: 'Variable', name: 'taxpayerId', variableName: 'id' }],
      selections: ['status', 'accessToken']
        .filter((name) => text.includes(name))
        .map((name) => ({ kind: 'ScalarField', alias: null, args: null, name, storageKey: null })),
    },
  ];
  const argumentDefinitions = [{ kind: 'LocalArgument', defaultValue: null, name: 'id' }];
  const named = { name: 'Token', argumentDefinitions, selections };
  return {
    kind: 'Request',
    fragment: { kind: 'Fragment', ...named, metadata: null, type: 'Query', abstractKey: null },
    operation: { kind: 'Operation', ...named },
    params: { id: null, cacheID: text, metadata: {}, name: 'Token', operationKind: 'query', text },
  };
}

/** `isPublished`: it accepts `application/graphql-response+json`. */
const clients: Readonly<Record<string, { readonly isPublished: boolean; readonly ask: Ask }>> = {
  'Apollo Client 4': {
    isPublished: true,
    ask: ({ query, variables, ...options }, uri) => {
      const link = new apollo4.HttpLink({ uri, ...options });
      const client = new apollo4.ApolloClient({ link, cache: new apollo4.InMemoryCache() });
      return client.query({ query, variables, errorPolicy: 'all' }).then(read, thrown);
    },
  },
  'Apollo Client 4 with persisted queries': {
    isPublished: true,
    ask: ({ query, variables, ...options }, uri) => {
      const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
      const link = new PersistedQueryLink({ sha256 }).concat(new apollo4.HttpLink({ uri, ...options }));
      const client = new apollo4.ApolloClient({ link, cache: new apollo4.InMemoryCache() });
      return client.query({ query, variables, errorPolicy: 'all' }).then(read, thrown);
    },
  },
  'Apollo Client 3': {
    isPublished: false,
    ask: ({ query, variables, ...options }, uri) => {
      const link = new apollo3.HttpLink({ uri, ...options });
      const client = new apollo3.ApolloClient({ link, cache: new apollo3.InMemoryCache() });
      return client
        .query({ query, variables, errorPolicy: 'all' })
        .then(({ data, errors }) => ({ data, failure: errors }), thrown);
    },
  },
  urql: {
    isPublished: true,
    ask: async ({ query, variables, headers, fetch }, url) => {
      const exchanges = [fetchExchange];
      const client = new UrqlClient({ url, fetch, fetchOptions: { headers }, exchanges, preferGetMethod: false });
      return read(await client.query(query, variables).toPromise());
    },
  },
  Relay: {
    isPublished: true,
    ask: async ({ query, variables, headers, fetch }, url) => {
      // The fetch function of Relay's guide.
      const accept = 'application/graphql-response+json; charset=utf-8, application/json; charset=utf-8';
      const all = { 'content-type': 'application/json', accept, ...headers };
      const network = Network.create(async ({ text }, values) => {
        const body = JSON.stringify({ query: text, variables: values });
        return (await fetch(url, { method: 'POST', headers: all, body })).json() as never;
      });
      const environment = new Environment({ network, store: new Store(new RecordSource()) });
      return fetchQuery(environment, relayRequest(query) as never, variables)
        .toPromise()
        .then(
          (data) => ({ data }),
          (error: { source?: unknown }) => ({ failure: error.source }),
        );
    },
  },
  'graphql-request': {
    isPublished: true,
    ask: ({ query, variables, headers, fetch }, url) =>
      new GraphQLClient(url, { headers, fetch, errorPolicy: 'all' })
        .rawRequest(print(query), variables)
        .then(({ data, errors }) => ({ data, failure: errors }), thrown),
  },
};

describe.each(Object.entries(clients))('%s', (name, { isPublished, ask }) => {
  async function outcome(query: string, variables: Record<string, unknown>, headers: Record<string, string>) {
    const statuses: number[] = [];
    const noted: typeof fetch = async (...request) => {
      const response = await fetch(...request);
      statuses.push(response.status);
      return response;
    };
    const asked = { query: parse(query), variables, headers, fetch: noted };
    const { data, failure } = await ask(asked, `${gateway.origin}/graphql`);
    return { status: statuses.at(-1), data: data ?? null, codes: problemsOf(failure).map(({ code }) => code) };
  }
  const status = 'query Token($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';

  it('reads data', async () => {
    const { data, ...rest } = await outcome(status, { id: taxpayerId }, { authorization });
    expect(rest).toEqual({ status: 200, codes: [] });
    expect(data).toMatchObject({ taxpayerToken: { status: 'AUTHORIZED' } });
  });

  it('reads data with errors', async () => {
    const query = 'query Token($id: ID!) { taxpayerToken(taxpayerId: $id) { status accessToken } }';
    const { data, ...rest } = await outcome(query, { id: taxpayerId }, { authorization });
    // Relay hands out the data of a partial answer and not its errors, unless the query asks for them.
    expect(rest).toEqual({ status: isPublished ? 294 : 200, codes: name === 'Relay' ? [] : ['FORBIDDEN'] });
    expect(data).toMatchObject({ taxpayerToken: { status: 'AUTHORIZED', accessToken: null } });
  });

  it.each([
    ['a document that is not valid', 'query Token($id: ID!) { taxpayerToken(id: $id) { status } }', 'x'],
    ['a variable that does not fit', status, { not: 'an id' }],
  ])('reads the refusal of %s', async (_, query, id) => {
    const { data, codes, ...rest } = await outcome(query, { id }, { authorization });
    expect({ data, ...rest }).toEqual({ data: null, status: isPublished ? 422 : 400 });
    expect(codes[0]).toBe(typeof id === 'string' ? 'GRAPHQL_VALIDATION_FAILED' : 'BAD_USER_INPUT');
  });

  it('reads the refusal of a caller without a token', async () => {
    const found = await outcome(status, { id: taxpayerId }, {});
    expect(found).toEqual({ status: 401, data: null, codes: ['UNAUTHENTICATED'] });
  });
});
