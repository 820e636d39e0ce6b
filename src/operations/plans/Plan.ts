import type { GraphQLError } from 'graphql';
import type { OperationContext } from '../OperationContext.js';

export type Variables = Readonly<Record<string, unknown>>;

/** What an operation came to; errors are not masked yet. */
export interface PlanResult {
  /** `data` as it is to be sent. */
  readonly json: string;
  readonly errors: readonly GraphQLError[] | undefined;
}

/** A text that a plan answers, with the string literals that were taken out of it (see `literals.ts`). */
export interface PlannedRequest {
  readonly query: string;
  readonly literals: readonly string[];
  readonly variables: Variables;
}

/** An operation as a list of steps: answers as graphql-js does, with everything looked up that does not change. */
export interface Plan {
  readonly type: 'query' | 'mutation';
  /** What the operation is called in metrics, see {@link operationLabel}. */
  readonly label: string;
  /** What the client calls it. */
  readonly operationName: string | undefined;
  readonly steps: readonly Step[];
  /**
   * Undefined when the variables are not plainly right: whether they are wrong, and how, is for others to say. What it
   * returns executes the operation, at once where nothing has to be waited for.
   */
  readonly prepare: (request: PlannedRequest) => Execute | undefined;
}

export type Execute = (context: OperationContext) => PlanResult | Promise<PlanResult>;

/** One field of an answer. */
export interface Step {
  readonly key: string;
  /** The key as it is to be sent, with its colon. */
  readonly prefix: string;
  /** Its value when that is known beforehand, as a type's name is. */
  readonly constant: string | undefined;
  readonly name: string;
  readonly resolve: Resolve | undefined;
  readonly args: readonly Argument[];
  readonly isNullable: boolean;
  /** For values that are not written as they are. */
  readonly serialize: ((value: unknown) => unknown) | undefined;
  /** What is asked for of an object. */
  readonly fields: readonly Step[] | undefined;
  /** The same as text, where that is nothing but values which the object has. */
  readonly selection: string | undefined;
  readonly parentType: string;
  /** Where it stands in the text, each time it does. */
  readonly positions: readonly number[];
}

export type Resolve = (source: unknown, args: Record<string, unknown>, context: OperationContext) => unknown;

export type Argument = { readonly name: string } & (
  | { readonly from: 'document'; readonly value: unknown }
  | { readonly from: 'variable'; readonly variable: string; readonly otherwise: unknown }
  | { readonly from: 'literal'; readonly place: number }
);

/** Thrown while planning: graphql-js is to execute this operation. */
export class NotPlannable extends Error {}
