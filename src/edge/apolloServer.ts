import { ApolloServer, type ApolloServerPlugin } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import type { DocumentNode, GraphQLFormattedError, GraphQLSchema, ValidationRule } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { RequestContext } from '../context.js';
import { maxMistakes } from '../errorBounds.js';
import type { Logger } from '../log.js';
import { isBug, maskError } from '../maskError.js';
import { refuseSubscriptions } from './refuseSubscriptions.js';
import { refuseMalformedVariables } from './variables.js';

export interface ApolloServerOptions {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly maxTokens: number;
  readonly validationRules: readonly ValidationRule[];
  /** Plugins that look on. */
  readonly observers: readonly ApolloServerPlugin<RequestContext>[];
  readonly log: Logger;
  readonly onBug: (error: unknown, requestId: string) => void;
}

/**
 * Apollo Server as we use it: parsing, validation with its document cache, and execution. HTTP is ours (see
 * `GraphQLEndpoint`), and so are its reports and traces, which would send data elsewhere.
 */
export function createApolloServer(options: ApolloServerOptions): ApolloServer<RequestContext> {
  const { schema, introspection, maxTokens, validationRules, observers, log, onBug } = options;
  return new ApolloServer<RequestContext>({
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
    documentStore: documentStore(),
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
      logBugs(onBug),
      ...observers,
    ],
  });
}

type DocumentStore = NonNullable<ConstructorParameters<typeof ApolloServer<RequestContext>>[0]['documentStore']>;

const maxDocuments = 500;
/** All their texts together, in characters: a parsed document is a hundred times as large. */
const maxCharacters = 500_000;

/**
 * Parsed and valid documents that came again, for what has no plan. Bounded by their texts: Apollo's own store writes each
 * document as JSON to learn its size, which takes as long as parsing it; and it keeps those that come once.
 */
function documentStore(): DocumentStore {
  const documents = new LRUCache<string, DocumentNode>({
    max: maxDocuments,
    maxSize: maxCharacters,
    sizeCalculation: ({ loc }) => 1 + (loc?.end ?? maxCharacters),
  });
  const seen = new LRUCache<string, true>({ max: maxDocuments });
  return {
    get: async (key) => documents.get(key),
    set: async (key, document) => {
      if (seen.has(key)) documents.set(key, document);
      else seen.set(key, true);
    },
    delete: async (key) => documents.delete(key),
  };
}

function logBugs(onBug: ApolloServerOptions['onBug']): ApolloServerPlugin<RequestContext> {
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
