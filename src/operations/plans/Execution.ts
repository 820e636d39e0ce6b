import {
  type FieldNode,
  type GraphQLError,
  type GraphQLField,
  type GraphQLLeafType,
  getArgumentValues,
  Kind,
  locatedError,
  type ResponsePath,
  responsePathAsArray,
} from 'graphql';
import type { Variables } from '../GraphQLRequest.js';
import type { OperationContext, Result } from '../Operation.js';

/** What to do for one field of an answer, or for each member of a list. */
export interface Step {
  readonly key: string;
  /** The value of `__typename`; undefined for other fields. */
  readonly constant: string | undefined;
  readonly field: GraphQLField<unknown, unknown>;
  readonly resolve: Resolve | undefined;
  /** Several when equal fields were merged. */
  readonly nodes: readonly [FieldNode, ...FieldNode[]];
  readonly isNullable: boolean;
  readonly leaf: GraphQLLeafType | undefined;
  /** The fields that are selected on an object; undefined for other values. */
  readonly fields: readonly Step[] | undefined;
  /** For a union: the `fields` of each type, by its name. */
  readonly byType: ReadonlyMap<unknown, readonly Step[]> | undefined;
  /** Of a list. */
  readonly member: Step | undefined;
}

type Arguments = Readonly<Record<string, unknown>>;
type Resolve = (source: unknown, args: Arguments, context: OperationContext) => unknown;
type Key = string | number;
/** Where an object or a list is in the answer. The root has no path. */
type Path = ResponsePath | undefined;
/** An object or a list of the answer while its fields or members are being resolved. */
type Target = Record<Key, unknown>;
type Pending = Promise<unknown> | undefined;

/** One execution of a plan. Methods return a promise only when they have to wait. */
export class Execution {
  readonly #errors: GraphQLError[] = [];
  /** Whether a field that must not be null has failed. Only fields of the root can: a test looks for others that could. */
  #isNull = false;

  constructor(
    private readonly variables: Variables,
    private readonly context: OperationContext,
  ) {}

  /** Errors that resolvers throw are in the result: they never make the returned promise reject. */
  run(steps: readonly Step[], source: unknown): Result | Promise<Result> {
    const data: Target = {};
    const pending = this.#fill(steps, source, data, undefined);
    const result = (): Result => ({
      data: this.#isNull ? null : data,
      errors: this.#errors.length > 0 ? this.#errors : undefined,
    });
    return pending === undefined ? result() : pending.then(result);
  }

  /** Sets the fields of an object. */
  #fill(steps: readonly Step[], source: unknown, target: Target, path: Path): Pending {
    return forEach(steps, (step) => this.#resolveField(step, source, target, path));
  }

  #resolveField(step: Step, source: unknown, target: Target, parentPath: Path): Pending {
    const { key, constant, resolve } = step;
    target[key] = constant ?? null; // set now: keys must be in the order of the document, whichever value comes first
    if (constant !== undefined) return undefined;
    if (resolve === undefined) {
      return this.#complete(step, key, (source as Target)[step.field.name], target, parentPath);
    }
    let value: unknown;
    try {
      value = resolve(source, this.#argumentsOf(step), this.context);
    } catch (error) {
      return this.#fail(step, key, error, parentPath);
    }
    return this.#settle(step, key, value, target, parentPath);
  }

  #settle(step: Step, key: Key, value: unknown, target: Target, parentPath: Path): Pending {
    if (!(value instanceof Promise)) return this.#complete(step, key, value, target, parentPath);
    return value.then(
      (ready) => this.#complete(step, key, ready, target, parentPath),
      (error) => this.#fail(step, key, error, parentPath),
    );
  }

  #complete(step: Step, key: Key, value: unknown, target: Target, parentPath: Path): Pending {
    const { isNullable, leaf, member } = step;
    if (value === null || value === undefined) {
      if (isNullable) return undefined;
      return this.#fail(step, key, new Error('A field that must not be null is null'), parentPath);
    }
    if (value instanceof Error) return this.#fail(step, key, value, parentPath);
    if (leaf !== undefined) {
      try {
        target[key] = leaf.serialize(value);
      } catch (error) {
        this.#fail(step, key, error, parentPath);
      }
      return undefined;
    }
    const path: Path = { prev: parentPath, key, typename: undefined };
    if (member === undefined) {
      const fields = step.fields ?? step.byType?.get((value as Target)['__typename']) ?? [];
      const object: Target = {};
      target[key] = object;
      return this.#fill(fields, value, object, path);
    }
    const values = value as readonly unknown[];
    const list = values.map(() => null) as unknown as Target;
    target[key] = list;
    return forEach(values, (each, index) => this.#settle(member, index, each, list, path));
  }

  /** A field's arguments. If all are variables that have a value, those are used directly, in a tenth of graphql-js' time. */
  #argumentsOf({ field, nodes: [node] }: Step): Arguments {
    const { variables } = this;
    const values: Record<string, unknown> = {};
    for (const { name, value } of node.arguments ?? []) {
      const isGiven = value.kind === Kind.VARIABLE && Object.hasOwn(variables, value.name.value);
      const given = isGiven ? variables[value.name.value] : undefined;
      if (given === undefined || given === null) return getArgumentValues(field, node, variables);
      values[name.value] = given;
    }
    return values;
  }

  /** Records a field's error. */
  #fail({ nodes, isNullable }: Step, key: Key, error: unknown, parentPath: Path): undefined {
    const path = responsePathAsArray({ prev: parentPath, key, typename: undefined });
    this.#errors.push(locatedError(error, nodes, path));
    if (!isNullable) this.#isNull = true;
  }
}

/** Calls `take` for each item; returns a promise for the pending ones. */
function forEach<Item>(items: readonly Item[], take: (item: Item, index: number) => Pending): Pending {
  let waiting: Promise<unknown>[] | undefined;
  for (let index = 0; index < items.length; index += 1) {
    const pending = take(items[index] as Item, index);
    if (pending === undefined) continue;
    waiting ??= [];
    waiting.push(pending);
  }
  return waiting && Promise.all(waiting);
}
