import { ApolloServer, type ApolloServerOptions } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import type { DocumentNode, GraphQLSchema } from 'graphql';
import type { OperationContext } from './OperationContext.js';

export type Logger = NonNullable<ApolloServerOptions<OperationContext>['logger']>;

/** How a document that the pipeline has parsed and validated reaches Apollo: as an extension of the request. */
export interface WithDocument {
  readonly document: DocumentNode;
}

/** Apollo Server executes documents that the pipeline has checked. Its reports and traces would send data elsewhere. */
export function createApolloServer(schema: GraphQLSchema, logger: Logger): ApolloServer<OperationContext> {
  return new ApolloServer<OperationContext>({
    schema,
    allowBatchedHttpRequests: false,
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
          const { document } = context.request.extensions as unknown as WithDocument;
          Object.assign(context, { document });
        },
      },
    ],
  });
}
