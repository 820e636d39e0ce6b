import type { DocumentNode } from 'graphql';

/** A document with the types of its result and variables, as every GraphQL client reads them. */
export interface TypedDocumentNode<Result, Variables> extends DocumentNode {
  /** Never there: it only carries the types. */
  __apiType?: (variables: Variables) => Result;
}
