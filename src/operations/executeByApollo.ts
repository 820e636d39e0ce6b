import { ApolloServer, HeaderMap } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import { type DocumentNode, execute } from 'graphql';
import type { Variables } from './GraphQLRequest.js';
import type { OperationContext, OperationsOptions, Result } from './Operation.js';

/**
 * Apollo Server runs operations whose documents are parsed and validated already; they are passed as an extension of the request.
 * Its reports and traces are off, because they would send data elsewhere.
 */
export function createApolloServer({ schema, log, quota }: OperationsOptions): ApolloServer<OperationContext> {
  return new ApolloServer<OperationContext>({
    schema,
    stopOnTerminationSignals: false,
    persistedQueries: false,
    documentStore: null,
    logger: log,
    plugins: [
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginInlineTraceDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
      ApolloServerPluginUsageReportingDisabled(),
      {
        // Apollo skips parsing and validation when the context has a document already.
        async requestDidStart(context) {
          Object.assign(context, { document: context.request.extensions?.['document'] });
          return {
            // Executes here. Apollo would do the same in a later microtask, where the time of the work could not be noted.
            async responseForOperation({ document, operationName, request: { variables }, contextValue }) {
              const args = { schema, document, operationName, variableValues: variables, contextValue };
              const singleResult = (await quota.timed(contextValue.holder, () => execute(args))) as never;
              return { http: { headers: new HeaderMap() }, body: { kind: 'single', singleResult } };
            },
          };
        },
      },
    ],
  });
}

/** Apollo runs on a copy of `contextValue`, so what changes during the operation must be in an object that it refers to. */
export async function executeByApollo(
  apollo: ApolloServer<OperationContext>,
  document: DocumentNode,
  operationName: string | undefined,
  variables: Variables,
  contextValue: OperationContext,
): Promise<Result> {
  const named = operationName === undefined ? {} : { operationName };
  const query = 'not read, but must not be empty';
  const request = { query, ...named, variables, extensions: { document } };
  const { body } = await apollo.executeOperation(request, { contextValue });
  if (body.kind !== 'single') throw new Error('The answer is incremental, which no schema of ours asks for');
  return body.singleResult;
}
