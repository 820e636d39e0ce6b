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
 * Apollo Server only executes documents: the pipeline has parsed and validated them, and passes them as an extension of the
 * request. Apollo's reports and traces are off, because they would send data elsewhere.
 */
export function createApolloServer(schema: GraphQLSchema, logger: Logger): ApolloServer<OperationContext> {
  return new ApolloServer<OperationContext>({
    schema,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    persistedQueries: false,
    documentStore: null,
    logger,
    formatError: (_, error) => error as never, // `Exit` masks errors
    plugins: [
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginInlineTraceDisabled(),
      ApolloServerPluginLandingPageDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
      ApolloServerPluginUsageReportingDisabled(),
      {
        // Apollo skips parsing and validation when the context has a document already.
        async requestDidStart(context) {
          Object.assign(context, { document: context.request.extensions?.['document'] });
        },
      },
    ],
  });
}
