// Hive Gateway: what of a caller's request goes on to the subgraphs, and how subscriptions are asked for.

export const gatewayConfig = {
  propagateHeaders: {
    fromClientToSubgraphs({ request }) {
      const authorization = request.headers.get('authorization');
      const secret = process.env.FEDERATION_SHARED_SECRET;
      return { ...(authorization && { authorization }), ...(secret && { 'x-gateway-router-secret': secret }) };
    },
  },
  transportEntries: {
    taxpayers: {
      options: {
        subscriptions: {
          kind: 'ws',
          location: '/graphql',
          options: { connectionParams: { authorization: '{context.headers.authorization}' } },
        },
      },
    },
  },
};
