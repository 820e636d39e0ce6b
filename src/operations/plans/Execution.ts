import { GraphQLError, Source } from 'graphql';
import { answerTooLarge } from '../answerSize.js';
import type { Result } from '../Exit.js';
import type { Variables } from '../GraphQLRequest.js';
import type { OperationContext } from '../OperationContext.js';
import type { Members, Plan, Selection, Step } from './Plan.js';
import { SharedObject } from './SharedObject.js';

/** An object or a list of the answer while its fields or members are being resolved. */
interface Target {
  readonly steps: readonly Step[];
  /** One for each step or list member, in order. */
  readonly values: Value[];
  /** The enclosing object or list, and the key in it; both undefined for the root. */
  readonly parent: Target | undefined;
  readonly key: string | number | undefined;
}

/** Of an object its target or its JSON, of a list its target, of a leaf what `JSON.stringify` takes. The step tells which. */
type Value = Target | string | NonNullable<unknown> | null;

/** A field or a member of a list that has an error. */
type Refused = Pick<Step, 'positions' | 'isNullable'> & { readonly key: string | number };

/** Thrown inside an execution to make the enclosing object null; its cause was recorded as an error before. */
const nulled = Symbol('nulled');
/** Thrown inside an execution: the answer is larger than allowed. */
const tooLarge = Symbol('too large');

/** One execution of a plan. Methods return a promise only when they have to wait. */
export class Execution {
  readonly #errors: GraphQLError[] = [];
  /** Characters of JSON so far: the bytes are at least as many. */
  #written = 0;
  /** Milliseconds that the event loop was busy with this execution after its first wait. */
  #busyMs = 0;

  constructor(
    private readonly plan: Plan,
    private readonly request: { readonly query: string; readonly variables: Variables },
    private readonly context: OperationContext,
  ) {}

  /** Errors that resolvers throw are in the result: they never make the returned promise reject. */
  run(): Result | Promise<Result> {
    const root: Target = { steps: this.plan.steps, values: [], parent: undefined, key: undefined };
    try {
      const pending = this.#fill(root, undefined);
      if (pending === undefined) return this.#finish(root);
      return pending
        .then(() => this.#resume(() => this.#finish(root)))
        .catch((reason) => this.#end(reason))
        .then((result) => ({ ...result, busyMs: this.#busyMs }));
    } catch (reason) {
      return this.#end(reason);
    }
  }

  #finish(root: Target): Result {
    return { json: this.#jsonOf(root), errors: this.#errors.length > 0 ? this.#errors : undefined };
  }

  /** Runs the work that follows a wait, and adds its duration to `#busyMs`. */
  #resume<T>(work: () => T): T {
    const beganAt = performance.now();
    try {
      return work();
    } finally {
      this.#busyMs += performance.now() - beganAt;
    }
  }

  #end(reason: unknown): Result {
    if (reason === nulled) return { json: 'null', errors: this.#errors };
    if (reason === tooLarge) return { json: 'null', errors: [answerTooLarge(this.context.maxAnswerBytes)] };
    throw reason;
  }

  /** Finds the values of an object's fields. Throws or rejects with {@link nulled} when the object has to be null. */
  #fill(target: Target, source: unknown): Promise<unknown> | undefined {
    const { steps } = target;
    return forEach(steps.length, (place) => this.#take(steps[place] as Step, place, source, target));
  }

  #take(step: Step, place: number, source: unknown, target: Target): Promise<unknown> | undefined {
    target.values[place] = step.constant ?? null;
    if (step.constant !== undefined) return undefined;
    if (step.resolve === undefined) {
      return this.#complete(step, place, (source as Record<string, unknown>)[step.name], target);
    }
    let value: unknown;
    try {
      value = step.resolve(source, this.#argumentsOf(step), this.context);
    } catch (error) {
      return this.#refuse(step, error, target);
    }
    if (!(value instanceof Promise)) return this.#complete(step, place, value, target);
    return value.then(
      (ready) => this.#resume(() => this.#complete(step, place, ready, target)),
      (error) => this.#refuse(step, error, target),
    );
  }

  #complete(step: Step, place: number, value: unknown, target: Target): Promise<unknown> | undefined {
    if (value === null || value === undefined) {
      if (step.isNullable) return undefined;
      const missing = new Error(`Cannot return null for non-nullable field ${step.parentType}.${step.name}.`);
      return this.#refuse(step, missing, target);
    }
    if (value instanceof Error) return this.#refuse(step, value, target);
    if (step.fields !== undefined) return this.#completeObject(step, step as Selection, place, value, target);
    if (step.members !== undefined) return this.#completeList(step, step.members, place, value, target);
    try {
      target.values[place] = step.serialize === undefined ? value : (step.serialize(value) as Value);
    } catch (error) {
      this.#refuse(step, error, target);
    }
    return undefined;
  }

  #completeList(step: Step, members: Members, place: number, value: unknown, parent: Target) {
    const values = value as readonly unknown[];
    const list: Target = { steps: [], values: values.map(() => null), parent, key: step.key };
    parent.values[place] = list;
    return forEach(values.length, (index) => this.#takeMember(step, members, index, values[index], list));
  }

  #takeMember(
    step: Step,
    members: Members,
    index: number,
    member: unknown,
    list: Target,
  ): Promise<unknown> | undefined {
    if (member instanceof Promise) {
      return member.then(
        (ready) => this.#resume(() => this.#takeMember(step, members, index, ready, list)),
        (error) => this.#refuse({ ...step, key: index, isNullable: true }, error, list),
      );
    }
    if (member === null || member === undefined) return undefined;
    if (member instanceof Error) return this.#refuse({ ...step, key: index, isNullable: true }, member, list);
    const selected = members.byType.get(members.typeOf(member)) as Selection;
    return this.#completeObject({ key: index, isNullable: true }, selected, index, member, list);
  }

  #completeObject(
    { key, isNullable }: Pick<Target, 'key'> & Pick<Step, 'isNullable'>,
    { fields, selection }: Selection,
    place: number,
    value: unknown,
    parent: Target,
  ): Promise<unknown> | undefined {
    const shared = selection !== undefined && value instanceof SharedObject ? value : undefined;
    const known = shared?.jsonOf(selection as string);
    if (known !== undefined) {
      this.#count(known.length);
      parent.values[place] = known;
      return undefined;
    }
    const target: Target = { steps: fields, values: [], parent, key };
    parent.values[place] = target;
    const errorsBefore = this.#errors.length;
    try {
      const pending = this.#fill(target, value);
      if (pending !== undefined) return pending.catch((reason) => this.#orNull(isNullable, place, reason, parent));
      if (shared && this.#errors.length === errorsBefore) {
        const json = this.#jsonOf(target);
        shared.keepJson(selection as string, json);
        parent.values[place] = json;
      }
    } catch (reason) {
      this.#orNull(isNullable, place, reason, parent);
    }
    return undefined;
  }

  #orNull(isNullable: boolean, place: number, reason: unknown, target: Target): void {
    if (reason !== nulled || !isNullable) throw reason;
    target.values[place] = null;
  }

  /** Records a field's error. Throws {@link nulled} when the field must not be null. */
  #refuse({ key, positions, isNullable }: Refused, error: unknown, target: Target): undefined {
    const originalError = error instanceof Error ? error : new Error('Something else than an error was thrown');
    const path: (string | number)[] = [key];
    for (let at: Target | undefined = target; at?.key !== undefined; at = at.parent) path.unshift(at.key);
    this.#errors.push(
      new GraphQLError(originalError.message, {
        source: new Source(this.request.query),
        positions,
        path,
        originalError,
      }),
    );
    if (!isNullable) throw nulled;
  }

  #argumentsOf({ args }: Step): Record<string, unknown> {
    const { variables } = this.request;
    const values: Record<string, unknown> = {};
    for (const argument of args) {
      const { name } = argument;
      if (argument.from === 'document') values[name] = argument.value;
      else if (Object.hasOwn(variables, argument.variable)) values[name] = variables[argument.variable];
      else if (argument.otherwise !== undefined) values[name] = argument.otherwise;
    }
    return values;
  }

  /** As `JSON.stringify` would write the object, in a fraction of the time. */
  #jsonOf({ steps, values }: Target): string {
    let json = '{';
    for (let place = 0; place < steps.length; place += 1) {
      const { prefix, fields, members } = steps[place] as Step;
      const value = values[place];
      if (place > 0) json += ',';
      json += prefix;
      if (members !== undefined) json += this.#jsonOfList(value as Target);
      else if (fields === undefined) {
        const text = JSON.stringify(value);
        this.#count(prefix.length + text.length);
        json += text;
      } else if (typeof value === 'object' && value !== null) json += this.#jsonOf(value as Target);
      else json += value; // JSON already, or null
    }
    return `${json}}`;
  }

  #jsonOfList({ values }: Target): string {
    const members = values.map((member) => (typeof member === 'string' ? member : this.#jsonOfMember(member)));
    return `[${members.join()}]`;
  }

  #jsonOfMember(member: unknown): string {
    this.#count('null'.length);
    return member === null ? 'null' : this.#jsonOf(member as Target);
  }

  #count(characters: number): void {
    this.#written += characters;
    if (this.#written > this.context.maxAnswerBytes) throw tooLarge;
  }
}

/** Calls `take` for each place; returns a promise for the pending ones. When one throws, the others' results are ignored. */
function forEach(places: number, take: (place: number) => Promise<unknown> | undefined): Promise<unknown> | undefined {
  let waiting: Promise<unknown>[] | undefined;
  try {
    for (let place = 0; place < places; place += 1) {
      const pending = take(place);
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
