import { ApolloServer, type ApolloServerPlugin } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import type { DocumentNode, GraphQLFormattedError, GraphQLSchema, ValidationRule } from 'graphql';
import { maxMistakes } from '../errors/errorBounds.js';
import { isBug, maskError } from '../errors/maskError.js';
import type { Logger } from '../observability/log.js';
import type { Recurring } from './documents/Recurring.js';
import type { OperationContext } from './OperationContext.js';
import { refuseSubscriptions } from './refuseSubscriptions.js';
import { refuseManyRepresentations } from './representations.js';
import { refuseMalformedVariables } from './variables.js';

export interface ApolloServerOptions {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly maxTokens: number;
  readonly validationRules: readonly ValidationRule[];
  /** MAX_REPRESENTATIONS */
  readonly maxRepresentations: number;
  /** Plugins that look on. */
  readonly observers: readonly ApolloServerPlugin<OperationContext>[];
  /** Those it parsed and found valid. */
  readonly documents: Recurring<DocumentNode>;
  readonly log: Logger;
  readonly onBug: (error: unknown, requestId: string) => void;
  /** Told that a document was read or checked since `beganAt` (of `performance.now()`). */
  readonly onWork: (context: OperationContext, beganAt: number) => void;
}

/**
 * Apollo Server as we use it: parsing, validation with its document cache, and execution. HTTP is ours (see
 * `GraphQLEndpoint`), and so are its reports and traces, which would send data elsewhere.
 */
export function createApolloServer(options: ApolloServerOptions): ApolloServer<OperationContext> {
  const { schema, introspection, maxTokens, validationRules, maxRepresentations, observers, documents, log } = options;
  return new ApolloServer<OperationContext>({
    schema,
    introspection,
    hideSchemaDetailsFromClientErrors: !introspection,
    validationRules: [...validationRules],
    validationOptions: { maxErrors: maxMistakes },
    parseOptions: { maxTokens },
    allowBatchedHttpRequests: false,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    persistedQueries: false,
    documentStore: documentStore(documents),
    logger: log,
    // The request id is added where the request is known.
    formatError: (_, error): GraphQLFormattedError => maskError(error, { requestId: '', suggestions: introspection }),
    plugins: [
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginInlineTraceDisabled(),
      ApolloServerPluginLandingPageDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
      ApolloServerPluginUsageReportingDisabled(),
      refuseSubscriptions,
      refuseMalformedVariables,
      limitRepresentations(maxRepresentations),
      logBugs(options.onBug),
      noteWork(options.onWork),
      ...observers,
    ],
  });
}

type DocumentStore = NonNullable<ConstructorParameters<typeof ApolloServer<OperationContext>>[0]['documentStore']>;

/**
 * Apollo names a document by the digest of its text, and puts the schema's before it. It gives all it parsed to be kept, which
 * is done for what comes again.
 */
function documentStore(documents: Recurring<DocumentNode>): DocumentStore {
  const digestIn = (key: string) => key.slice(key.indexOf(':') + 1);
  return {
    get: async (key) => documents.get(digestIn(key)),
    set: async (key, document) => documents.offer(digestIn(key), document),
    delete: async () => false,
  };
}

function limitRepresentations(most: number): ApolloServerPlugin<OperationContext> {
  return {
    async requestDidStart() {
      return {
        async didResolveOperation({ document, operation, request }) {
          if (operation) refuseManyRepresentations({ document, operation, variables: request.variables ?? {} }, most);
        },
      };
    },
  };
}

function logBugs(onBug: ApolloServerOptions['onBug']): ApolloServerPlugin<OperationContext> {
  return {
    async requestDidStart() {
      return {
        async didEncounterErrors({ errors, contextValue }) {
          for (const error of errors) if (isBug(error)) onBug(error, contextValue.requestId);
        },
      };
    },
  };
}

/** Apollo does nothing else between the begin and the end of each of these. */
function noteWork(onWork: ApolloServerOptions['onWork']): ApolloServerPlugin<OperationContext> {
  const timed = async ({ contextValue }: { readonly contextValue: OperationContext }) => {
    const beganAt = performance.now();
    return async () => onWork(contextValue, beganAt);
  };
  return {
    async requestDidStart() {
      return { parsingDidStart: timed, validationDidStart: timed };
    },
  };
}
