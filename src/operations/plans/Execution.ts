import { GraphQLError, type Source } from 'graphql';
import type { Result } from '../answer.js';
import type { Variables } from '../GraphQLRequest.js';
import type { OperationContext } from '../OperationContext.js';

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

/** The fields that are selected on the members of a list, by the name of a member's type. A member may be null. */
export interface Members {
  readonly typeOf: (member: unknown) => unknown;
  readonly byType: ReadonlyMap<unknown, readonly Step[]>;
}

export type Resolve = (source: unknown, args: Record<string, unknown>, context: OperationContext) => unknown;

export type Argument = { readonly name: string } & (
  | { readonly from: 'document'; readonly value: unknown }
  | { readonly from: 'variable'; readonly variable: string; readonly otherwise: unknown }
);

/** An object or a list of the answer while its fields or members are being resolved. */
type Target = Record<string | number, unknown>;

/** Where an object or a list is in the answer. The root has no place. */
interface Place {
  readonly key: string | number;
  readonly around: Place | undefined;
}

/** A field, or a member of a list. */
type Slot = Pick<Step, 'positions' | 'isNullable'> & { readonly key: string | number };

/** Thrown inside an execution to make the enclosing object null; its cause was recorded as an error before. */
const nulled = Symbol('nulled');

/** One execution of a plan. Methods return a promise only when they have to wait. */
export class Execution {
  readonly #errors: GraphQLError[] = [];

  constructor(
    private readonly steps: readonly Step[],
    private readonly source: Source,
    private readonly variables: Variables,
    private readonly context: OperationContext,
  ) {}

  /** Errors that resolvers throw are in the result: they never make the returned promise reject. */
  run(): Result | Promise<Result> {
    const data: Target = {};
    try {
      const pending = this.#fill(data, this.steps, undefined, undefined);
      if (pending === undefined) return this.#resultOf(data);
      return pending.then(() => this.#resultOf(data)).catch((reason) => this.#end(reason));
    } catch (reason) {
      return this.#end(reason);
    }
  }

  #resultOf(data: Target | null): Result {
    return { data, errors: this.#errors.length > 0 ? this.#errors : undefined };
  }

  #end(reason: unknown): Result {
    if (reason === nulled) return this.#resultOf(null);
    throw reason;
  }

  /** Finds the values of an object's fields. Throws or rejects with {@link nulled} when the object has to be null. */
  #fill(target: Target, steps: readonly Step[], source: unknown, place: Place | undefined) {
    return forEach(steps, (step) => this.#take(step, source, target, place));
  }

  #take(step: Step, source: unknown, target: Target, around: Place | undefined): Promise<unknown> | undefined {
    target[step.key] = step.constant ?? null; // at once: the keys are in the order of the document, whatever comes first
    if (step.constant !== undefined) return undefined;
    if (step.resolve === undefined) {
      return this.#complete(step, (source as Record<string, unknown>)[step.name], target, around);
    }
    let value: unknown;
    try {
      value = step.resolve(source, this.#argumentsOf(step), this.context);
    } catch (error) {
      return this.#refuse(step, error, around);
    }
    if (!(value instanceof Promise)) return this.#complete(step, value, target, around);
    return value.then(
      (ready) => this.#complete(step, ready, target, around),
      (error) => this.#refuse(step, error, around),
    );
  }

  #complete(step: Step, value: unknown, target: Target, around: Place | undefined): Promise<unknown> | undefined {
    if (value === null || value === undefined) {
      if (step.isNullable) return undefined;
      const missing = new Error(`Cannot return null for non-nullable field ${step.parentType}.${step.name}.`);
      return this.#refuse(step, missing, around);
    }
    if (value instanceof Error) return this.#refuse(step, value, around);
    if (step.fields !== undefined) return this.#completeObject(step, step.fields, value, target, around);
    if (step.members !== undefined) return this.#completeList(step, step.members, value, target, around);
    try {
      target[step.key] = step.serialize === undefined ? value : step.serialize(value);
    } catch (error) {
      this.#refuse(step, error, around);
    }
    return undefined;
  }

  #completeList(step: Step, members: Members, value: unknown, target: Target, around: Place | undefined) {
    const values = value as readonly unknown[];
    const list: unknown[] = values.map(() => null);
    target[step.key] = list;
    const place = { key: step.key, around };
    return forEach(values, (member, index) => {
      const slot = { key: index, isNullable: true, positions: step.positions };
      return this.#takeMember(slot, members, member, list as unknown as Target, place);
    });
  }

  #takeMember(
    slot: Slot,
    members: Members,
    member: unknown,
    list: Target,
    around: Place,
  ): Promise<unknown> | undefined {
    if (member instanceof Promise) {
      return member.then(
        (ready) => this.#takeMember(slot, members, ready, list, around),
        (error) => this.#refuse(slot, error, around),
      );
    }
    if (member === null || member === undefined) return undefined;
    if (member instanceof Error) return this.#refuse(slot, member, around);
    const fields = members.byType.get(members.typeOf(member)) as readonly Step[];
    return this.#completeObject(slot, fields, member, list, around);
  }

  #completeObject(
    { key, isNullable }: Slot,
    fields: readonly Step[],
    value: unknown,
    target: Target,
    around: Place | undefined,
  ): Promise<unknown> | undefined {
    const object: Target = {};
    target[key] = object;
    const orNull = (reason: unknown): undefined => {
      if (reason !== nulled || !isNullable) throw reason;
      target[key] = null;
    };
    try {
      return this.#fill(object, fields, value, { key, around })?.catch(orNull);
    } catch (reason) {
      return orNull(reason);
    }
  }

  /** Records a field's error. Throws {@link nulled} when the field must not be null. */
  #refuse({ key, positions, isNullable }: Slot, error: unknown, around: Place | undefined): undefined {
    const originalError = error instanceof Error ? error : new Error('Something else than an error was thrown');
    const path: (string | number)[] = [key];
    for (let at = around; at !== undefined; at = at.around) path.unshift(at.key);
    const { source } = this;
    this.#errors.push(new GraphQLError(originalError.message, { source, positions, path, originalError }));
    if (!isNullable) throw nulled;
  }

  #argumentsOf({ args }: Step): Record<string, unknown> {
    const { variables } = this;
    const values: Record<string, unknown> = {};
    for (const argument of args) {
      const { name } = argument;
      if (argument.from === 'document') values[name] = argument.value;
      else if (Object.hasOwn(variables, argument.variable)) values[name] = variables[argument.variable];
      else if (argument.otherwise !== undefined) values[name] = argument.otherwise;
    }
    return values;
  }
}

/** Calls `take` for each item; returns a promise for the pending ones. When one throws, the others' results are ignored. */
function forEach<Item>(
  items: readonly Item[],
  take: (item: Item, index: number) => Promise<unknown> | undefined,
): Promise<unknown> | undefined {
  let waiting: Promise<unknown>[] | undefined;
  try {
    for (let index = 0; index < items.length; index += 1) {
      const pending = take(items[index] as Item, index);
      if (pending === undefined) continue;
      waiting ??= [];
      waiting.push(pending);
    }
  } catch (reason) {
    if (waiting) Promise.all(waiting).catch(() => {});
    throw reason;
  }
  return waiting && Promise.all(waiting);
}
