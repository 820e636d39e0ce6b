import type { Variables } from '../GraphQLRequest.js';
import type { Asked, OperationContext } from '../OperationContext.js';

/** An operation as a list of steps. It is answered as graphql-js answers, with everything constant looked up once. */
export interface Plan extends Asked {
  readonly type: 'query' | 'mutation';
  /** See {@link Deprecations}. */
  readonly deprecated: readonly string[] | undefined;
  readonly operationName: string | undefined;
  readonly steps: readonly Step[];
  /** Where the string literals that vary begin in the template, in ascending order (see `literals.ts`). */
  readonly literalStarts: readonly number[];
  /** The coerced variables; undefined when Apollo is to answer, because they are malformed or need special rules. */
  readonly readVariables: (given: Variables) => Variables | undefined;
}

/** What is known of a document that was answered and came again. */
export type KnownPlan = Plan | { readonly type: 'none' };

/** What is selected of an object. */
export interface Selection {
  readonly fields: readonly Step[];
  /** The same as text, where every field is a plain property of the object. */
  readonly selection: string | undefined;
}

/** What is selected of the members of a list, each of which may be null, by the names of their types. */
export interface Members {
  readonly typeOf: (member: unknown) => unknown;
  readonly byType: ReadonlyMap<unknown, Selection>;
}

/** One field of an answer. */
export interface Step {
  readonly key: string;
  /** The key as JSON, with its colon. */
  readonly prefix: string;
  /** The value where it is known beforehand: a type's name. */
  readonly constant: string | undefined;
  readonly name: string;
  readonly resolve: Resolve | undefined;
  readonly args: readonly Argument[];
  readonly isNullable: boolean;
  /** For values that are not written as they are. */
  readonly serialize: ((value: unknown) => unknown) | undefined;
  readonly fields: readonly Step[] | undefined;
  readonly selection: string | undefined;
  /** Of the list `_entities`. */
  readonly members: Members | undefined;
  readonly parentType: string;
  /** Each place where the field stands in the document. */
  readonly positions: readonly number[];
}

export type Resolve = (source: unknown, args: Record<string, unknown>, context: OperationContext) => unknown;

export type Argument = { readonly name: string } & (
  | { readonly from: 'document'; readonly value: unknown }
  | { readonly from: 'variable'; readonly variable: string; readonly otherwise: unknown }
  | { readonly from: 'literal'; readonly place: number }
);
