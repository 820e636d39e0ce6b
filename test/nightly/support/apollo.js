import { composeServices } from '@apollo/composition';
import { ApolloGateway, RemoteGraphQLDataSource } from '@apollo/gateway';
import { ApolloServer } from '@apollo/server';
import { atEnd } from '../../support/atEnd.js';

export { composeServices };

/** Apollo's router written in JavaScript. `ask` sends an operation through it with the caller's `authorization`. */
export async function startApolloGateway(supergraphSdl, secret) {
  const buildService = ({ name, url }) =>
    new RemoteGraphQLDataSource({
      url,
      willSendRequest: ({ request, context }) => {
        if (name === 'taxpayers') request.http?.headers.set('x-gateway-router-secret', secret);
        if (context.authorization) request.http?.headers.set('authorization', context.authorization);
      },
    });
  const server = new ApolloServer({ gateway: new ApolloGateway({ supergraphSdl, buildService }) });
  await server.start();
  atEnd(() => server.stop());
  return {
    ask: async (query, variables, authorization) => {
      const request = { query, variables: { ...variables } };
      const { body } = await server.executeOperation(request, { contextValue: { authorization } });
      return body.kind === 'single' ? JSON.parse(JSON.stringify(body.singleResult)) : {};
    },
  };
}
