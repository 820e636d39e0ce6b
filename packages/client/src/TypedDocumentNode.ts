import type { DocumentNode } from 'graphql';

/** A document with the types of its result and variables, as every GraphQL client reads them; no document has `__apiType`. */
export interface TypedDocumentNode<Result, Variables> extends DocumentNode {
  __apiType?: (variables: Variables) => Result;
}
