import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { ApolloProvider } from '@apollo/client/react';
import { OperationTypeNode } from 'graphql';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './App.js';
import { accessToken } from './accessToken.js';
import { liveClient } from './liveClient.js';
import './style.css';

const signedIn = new SetContextLink(async ({ headers }) => {
  const token = await accessToken();
  return { headers: { ...headers, ...(token && { authorization: `Bearer ${token}` }) } };
});
const client = new ApolloClient({
  cache: new InMemoryCache({
    typePolicies: { TaxpayerToken: { keyFields: ['taxpayerId'] }, RefreshJob: { keyFields: ['taxpayerId', 'jobId'] } },
  }),
  link: ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(liveClient),
    signedIn.concat(new HttpLink({ uri: '/graphql' })),
  ),
});

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no #root');
createRoot(root).render(
  <StrictMode>
    <ApolloProvider client={client}>
      <App />
    </ApolloProvider>
  </StrictMode>,
);
