import { print } from 'graphql';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient, type Sink } from 'graphql-ws';
import { WebSocket } from 'ws';
import {
  RefreshJobUpdatedDocument,
  type RefreshJobUpdatedSubscription,
  TaxpayerTokenDocument,
} from '../../packages/client/src/generated/graphql.js';
import { quickPolls, startTestGateway, startTrustedProvider, type Texts } from '../support/gateway.js';
import { addJob } from '../support/liveJob.js';

const { ApolloClient, HttpLink, InMemoryCache } = await import('@apollo/client');
const { GraphQLWsLink } = await import('@apollo/client/link/subscriptions');
const { fetchExchange, Client: UrqlClient } = await import('@urql/core');

let job: { taxpayerId: string; jobId: string };
let authorization: string;

const provider = await startTrustedProvider();
const gateway = await startTestGateway({ ...provider.env, ...quickPolls });

beforeEach(async () => {
  job = addJob(gateway);
  const scope = 'taxpayers:read refresh-jobs:read client-links:create';
  authorization = await provider.watcherOf([job.taxpayerId], 300, scope);
});

const url = `${gateway.origin}/graphql`;

type Result = { data?: RefreshJobUpdatedSubscription | null };

/** Completes the job at the first status that the subscription brings, and expects both statuses. */
async function expectFollowed(subscribe: (sink: Sink<Result>) => void) {
  const statuses: unknown[] = [];
  await new Promise<void>((complete, error) => {
    const next = ({ data }: Result) => {
      statuses.push(data?.refreshJobUpdated.status);
      gateway.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    };
    subscribe({ next, error, complete });
  });
  expect(statuses).toEqual(['PROCESSING', 'COMPLETED']);
}

it.each(['WebSocket', 'multipart over HTTP'])('Apollo Client subscribes by %s', async (way) => {
  const sockets = createWsClient({
    url: url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization },
  });
  const link =
    way === 'WebSocket' ? new GraphQLWsLink(sockets) : new HttpLink({ uri: url, headers: { authorization } });
  const client = new ApolloClient({ cache: new InMemoryCache(), link });
  await expectFollowed((sink) =>
    client.subscribe({ query: RefreshJobUpdatedDocument, variables: job }).subscribe(sink),
  );
  client.stop();
  await sockets.dispose();
});

describe('urql', () => {
  it('subscribes with its own fetch, which asks for events', async () => {
    const client = new UrqlClient({
      url,
      preferGetMethod: false,
      fetchSubscriptions: true,
      fetchOptions: { headers: { authorization } },
      exchanges: [fetchExchange],
    });
    await expectFollowed(({ next, complete }) =>
      client
        .subscription(RefreshJobUpdatedDocument, job)
        .subscribe((result: Result & { hasNext: boolean }) => (result.hasNext ? next(result) : complete())),
    );
  });

  it('asks by GET unless it is told, which takes a header', async () => {
    const ask = async (headers: Texts) => {
      const fetchOptions = { headers: { authorization, ...headers } };
      const client = new UrqlClient({ url, fetchOptions, exchanges: [fetchExchange] });
      return client.query(TaxpayerTokenDocument, { taxpayerId: job.taxpayerId }).toPromise();
    };
    expect((await ask({})).error?.message).toMatch(/must send the header apollo-require-preflight/);
    expect((await ask({ 'apollo-require-preflight': 'yes' })).data?.taxpayerToken?.status).toBe('AUTHORIZED');
  });
});

it('graphql-sse subscribes', async () => {
  const client = createSseClient({ url: `${url}/stream`, headers: { authorization } });
  const query = print(RefreshJobUpdatedDocument);
  await expectFollowed((sink) => client.subscribe<RefreshJobUpdatedSubscription>({ query, variables: job }, sink));
  client.dispose();
});
