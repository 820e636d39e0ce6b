import { ApolloServer, type ApolloServerOptions } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import type { GraphQLSchema } from 'graphql';
import type { OperationContext } from './OperationContext.js';

export type Logger = NonNullable<ApolloServerOptions<OperationContext>['logger']>;

/**
 * Apollo Server executes documents that the pipeline has checked, which reach it as an extension of the request. Its
 * reports and traces would send data elsewhere.
 */
export function createApolloServer(schema: GraphQLSchema, logger: Logger): ApolloServer<OperationContext> {
  return new ApolloServer<OperationContext>({
    schema,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    persistedQueries: false,
    documentStore: null,
    logger,
    formatError: (_, error) => error as never, // masked where everything leaves
    plugins: [
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginInlineTraceDisabled(),
      ApolloServerPluginLandingPageDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
      ApolloServerPluginUsageReportingDisabled(),
      {
        // Apollo neither parses nor validates a request that has its document already.
        async requestDidStart(context) {
          Object.assign(context, { document: context.request.extensions?.['document'] });
        },
      },
    ],
  });
}
