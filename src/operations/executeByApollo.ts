import { ApolloServer, HeaderMap } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import { type ExecutionArgs, execute } from 'graphql';
import type { OperationContext, OperationsOptions, Result } from './Operation.js';

/** What to execute; Apollo carries it as the extensions of a request. */
interface Asked extends ExecutionArgs {
  readonly contextValue: OperationContext;
}

/**
 * Apollo Server runs operations whose documents are parsed and validated already. Its reports and traces are off, because they
 * would send data elsewhere.
 */
export function createApolloServer({ schema, log, quota }: OperationsOptions): ApolloServer {
  return new ApolloServer({
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
        async requestDidStart(context) {
          const asked = context.request.extensions as Asked;
          Object.assign(context, { document: asked.document }); // Apollo then skips parsing and validation
          return {
            // Executes here. Apollo would do the same in a later microtask, where the time of the work could not be noted.
            async responseForOperation() {
              const singleResult = (await quota.timed(asked.contextValue.holder, () => execute(asked))) as never;
              return { http: { headers: new HeaderMap() }, body: { kind: 'single', singleResult } };
            },
          };
        },
      },
    ],
  });
}

export async function executeByApollo(apollo: ApolloServer, asked: Asked): Promise<Result> {
  const named = asked.operationName == null ? {} : { operationName: asked.operationName };
  const request = { query: 'not read, but must not be empty', ...named, extensions: { ...asked } };
  const { body } = await apollo.executeOperation(request);
  if (body.kind !== 'single') throw new Error('The answer is incremental, which no schema of ours asks for');
  return body.singleResult;
}
