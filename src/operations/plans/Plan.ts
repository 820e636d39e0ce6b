import type { Variables } from '../GraphQLRequest.js';
import type { OperationContext } from '../OperationContext.js';

/** An operation as a list of steps, which give the answer graphql-js would give. Everything constant is looked up once. */
export interface Plan {
  readonly type: 'query' | 'mutation';
  /** See {@link operationLabel}. */
  readonly label: string;
  readonly operationName: string | undefined;
  readonly steps: readonly Step[];
  /** Coerces the variables. Returns undefined for malformed ones, and for those that need special rules: Apollo answers. */
  readonly readVariables: (given: Variables) => Variables | undefined;
}

/** The plan of a document that was answered and came again; `none` for a document that cannot have one. */
export type KnownPlan = Plan | { readonly type: 'none' };

/** The fields that are selected on the members of a list, by the name of a member's type. A member may be null. */
export interface Members {
  readonly typeOf: (member: unknown) => unknown;
  readonly byType: ReadonlyMap<unknown, readonly Step[]>;
}

/** One field of an answer. */
export interface Step {
  readonly key: string;
  /** The value of `__typename`; undefined for other fields. */
  readonly constant: string | undefined;
  readonly name: string;
  readonly resolve: Resolve | undefined;
  readonly args: readonly Argument[];
  readonly isNullable: boolean;
  /** Turns the value into what JSON shows; undefined when that is the value itself. */
  readonly serialize: ((value: unknown) => unknown) | undefined;
  /** The fields that are selected on an object; undefined for other values. */
  readonly fields: readonly Step[] | undefined;
  /** Only for the list `_entities`. */
  readonly members: Members | undefined;
  readonly parentType: string;
  /** Where the field is in the document: several positions when equal fields were merged. */
  readonly positions: readonly number[];
}

export type Resolve = (source: unknown, args: Record<string, unknown>, context: OperationContext) => unknown;

export type Argument = { readonly name: string } & (
  | { readonly from: 'document'; readonly value: unknown }
  | { readonly from: 'variable'; readonly variable: string; readonly otherwise: unknown }
);
