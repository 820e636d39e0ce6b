// Hive Gateway: what of a caller's request goes on to the subgraphs, how subscriptions are asked for, and what a request may
// cost.

export const gatewayConfig = {
  // By the @cost of the subgraphs: 50 refresh jobs, or 100 token records.
  demandControl: { maxCost: 1000 },
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
