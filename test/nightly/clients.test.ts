import { print } from 'graphql';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
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

const httpUrl = () => `${gateway.origin}/graphql`;
const wsUrl = () => httpUrl().replace('http', 'ws');

/** Notes what a subscription brings, and completes the job at the first status. */
function watching() {
  const statuses: string[] = [];
  let over: () => void;
  let failed: (error: unknown) => void;
  const complete = new Promise<void>((resolve, reject) => {
    over = resolve;
    failed = reject;
  });
  return {
    statuses,
    complete,
    sink: {
      next: ({ data }: { data?: unknown }) => {
        statuses.push((data as RefreshJobUpdatedSubscription).refreshJobUpdated.status);
        if (statuses.length === 1) {
          gateway.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
        }
      },
      error: (error: unknown) => failed(error),
      complete: () => over(),
    },
  };
}

it.each(['WebSocket', 'multipart over HTTP'])('Apollo Client subscribes by %s', async (way) => {
  const sockets = createWsClient({
    url: wsUrl(),
    webSocketImpl: WebSocket,
    connectionParams: { authorization },
  });
  const link =
    way === 'WebSocket' ? new GraphQLWsLink(sockets) : new HttpLink({ uri: httpUrl(), headers: { authorization } });
  const client = new ApolloClient({ cache: new InMemoryCache(), link });
  const watch = watching();
  client.subscribe({ query: RefreshJobUpdatedDocument, variables: job }).subscribe(watch.sink);
  await watch.complete;
  expect(watch.statuses).toEqual(['PROCESSING', 'COMPLETED']);
  client.stop();
  await sockets.dispose();
});

describe('urql', () => {
  it('subscribes with its own fetch, which asks for events', async () => {
    const client = new UrqlClient({
      url: httpUrl(),
      preferGetMethod: false,
      fetchSubscriptions: true,
      fetchOptions: { headers: { authorization } },
      exchanges: [fetchExchange],
    });
    const watch = watching();
    client.subscription(RefreshJobUpdatedDocument, job).subscribe((result: { data?: unknown }) => {
      watch.sink.next(result);
      if (watch.statuses.length === 2) watch.sink.complete();
    });
    await watch.complete;
    expect(watch.statuses).toEqual(['PROCESSING', 'COMPLETED']);
  });

  it('asks by GET unless it is told, which takes a header', async () => {
    const ask = async (headers: Texts) => {
      const fetchOptions = { headers: { authorization, ...headers } };
      const client = new UrqlClient({ url: httpUrl(), fetchOptions, exchanges: [fetchExchange] });
      return client.query(TaxpayerTokenDocument, { taxpayerId: job.taxpayerId }).toPromise();
    };
    expect((await ask({})).error?.message).toMatch(/must send the header apollo-require-preflight/);
    expect((await ask({ 'apollo-require-preflight': 'yes' })).data?.taxpayerToken?.status).toBe('AUTHORIZED');
  });
});

it('graphql-sse subscribes', async () => {
  const client = createSseClient({ url: `${gateway.origin}/graphql/stream`, headers: { authorization } });
  const watch = watching();
  client.subscribe({ query: print(RefreshJobUpdatedDocument), variables: job }, watch.sink as never);
  await watch.complete;
  expect(watch.statuses).toEqual(['PROCESSING', 'COMPLETED']);
  client.dispose();
});
