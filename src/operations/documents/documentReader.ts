import { hash } from 'node:crypto';
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql';
import { maxMistakes } from '../../errors/errorBounds.js';
import { documentRules, type OperationLimits } from '../documentLimits.js';
import type { Recurring } from './DocumentMemory.js';

export interface ReaderOptions {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly limits: OperationLimits;
}

/**
 * The one place where documents are parsed and validated, for every transport. Gives the document of a text that is valid
 * and within all limits. `memory` is by the SHA-256 of the text. @throws InvalidDocument
 */
export function documentReader({ schema, introspection, limits }: ReaderOptions, memory: Recurring<DocumentNode>) {
  const rules = [...specifiedRules, ...(introspection ? [] : [noIntrospection]), ...documentRules(limits)];
  return (query: string): DocumentNode => {
    const name = hash('sha256', query, 'hex');
    const known = memory.get(name);
    if (known) return known;
    const document = parsed(query, limits.tokens);
    const errors = validate(schema, document, rules, { maxErrors: maxMistakes });
    if (errors.length > 0) throw new InvalidDocument(errors);
    memory.offer(name, document);
    return document;
  };
}

/** All that is wrong with a document. */
export class InvalidDocument extends Error {
  constructor(readonly errors: readonly GraphQLError[]) {
    super('The document is not valid');
  }
}

/** Parses with the code that tells a syntax error from other mistakes. */
function parsed(query: string, maxTokens: number): DocumentNode {
  try {
    return parse(query, { maxTokens });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    const { message, source, positions } = error;
    const extensions = { code: 'GRAPHQL_PARSE_FAILED' };
    throw new InvalidDocument([new GraphQLError(message, { source, positions, extensions })]);
  }
}

/** In the words of Apollo Server. */
const noIntrospection: ValidationRule = (context) => ({
  Field(node) {
    if (node.name.value !== '__schema' && node.name.value !== '__type') return;
    const message =
      'GraphQL introspection is not allowed by Apollo Server, but the query contained __schema or __type. To enable introspection, pass introspection: true to ApolloServer in production';
    context.reportError(new GraphQLError(message, { nodes: node }));
  },
});
