import type { ApolloServerPlugin } from '@apollo/server';
import { GatewayError } from '../errors/errors.js';
import type { OperationContext } from './OperationContext.js';

/** Apollo Server would run a subscription as if it were a query, and fail in the resolver. */
export const refuseSubscriptions: ApolloServerPlugin<OperationContext> = {
  async requestDidStart() {
    return {
      async didResolveOperation({ operation }) {
        if (operation?.operation !== 'subscription') return;
        throw new GatewayError(
          'BAD_USER_INPUT',
          'A subscription needs a stream: use a WebSocket on this path, or server-sent events on /graphql/stream',
          { httpStatus: 400 },
        );
      },
    };
  },
};
