import { GraphQLError, Source } from 'graphql';
import { answerTooLarge } from '../answerSize.js';
import type { OperationContext } from '../OperationContext.js';
import type { PlannedRequest, PlanResult, Step, Variables } from './Plan.js';
import { SharedObject } from './SharedObject.js';
import type { TemplateLiterals } from './TemplateLiterals.js';

/** One execution. */
export interface Run {
  readonly request: PlannedRequest;
  readonly template: TemplateLiterals;
  readonly variables: Variables;
  readonly context: OperationContext;
  readonly errors: GraphQLError[];
  /** Characters written so far, of which each takes a byte or more. */
  written: number;
}

interface Path {
  readonly before: Path | undefined;
  readonly key: string;
}

/** Thrown while executing: the error is noted, and the object that needed the value is null. */
const nulled = Symbol('nulled');
/** Thrown while executing: there is to be no answer. */
const tooLarge = Symbol('too large');

/** The values of an object's fields in the order of its steps; of an object they are such a list again, or its JSON. */
type Values = unknown[];

/**
 * Executes the steps of a plan's root; never rejects for what a resolver threw. Ends early when the answer becomes larger
 * than it may be: with that error alone.
 */
export function execute(steps: readonly Step[], run: Run): PlanResult | Promise<PlanResult> {
  const values: Values = [];
  const finish = (): PlanResult => {
    const json = jsonOf(steps, values, run);
    return { json, errors: run.errors.length > 0 ? run.errors : undefined };
  };
  const end = (reason: unknown): PlanResult => {
    if (reason === nulled) return { json: 'null', errors: run.errors };
    if (reason === tooLarge) return { json: 'null', errors: [answerTooLarge(run.context.maxAnswerBytes)] };
    throw reason;
  };
  try {
    const filling = fill(steps, undefined, values, undefined, run);
    return filling ? filling.then(finish).catch(end) : finish();
  } catch (reason) {
    return end(reason);
  }
}

/** Finds the values of an object's fields. Throws or rejects with {@link nulled} when the object has to be null. */
function fill(
  steps: readonly Step[],
  source: unknown,
  values: Values,
  path: Path | undefined,
  run: Run,
): Promise<unknown> | undefined {
  let waiting: Promise<unknown>[] | undefined;
  try {
    for (let place = 0; place < steps.length; place += 1) {
      const pending = take(steps[place] as Step, place, source, values, path, run);
      if (pending === undefined) continue;
      waiting ??= [];
      waiting.push(pending);
    }
  } catch (reason) {
    if (waiting) Promise.all(waiting).catch(() => {}); // nobody waits for the others any more
    throw reason;
  }
  return waiting && Promise.all(waiting);
}

function take(
  step: Step,
  place: number,
  source: unknown,
  values: Values,
  path: Path | undefined,
  run: Run,
): Promise<unknown> | undefined {
  values[place] = null;
  if (step.constant !== undefined) {
    values[place] = step.constant;
    return undefined;
  }
  if (step.resolve === undefined) {
    return complete(step, place, (source as Record<string, unknown>)[step.name], values, path, run);
  }
  let value: unknown;
  try {
    value = step.resolve(source, argumentsOf(step, run), run.context);
  } catch (error) {
    refuse(step, error, path, run);
    return undefined;
  }
  if (!(value instanceof Promise)) return complete(step, place, value, values, path, run);
  return value.then(
    (ready) => complete(step, place, ready, values, path, run),
    (error) => refuse(step, error, path, run),
  );
}

function complete(
  step: Step,
  place: number,
  value: unknown,
  values: Values,
  path: Path | undefined,
  run: Run,
): Promise<unknown> | undefined {
  if (value === null || value === undefined) {
    if (!step.isNullable) refuse(step, undefined, path, run);
    return undefined;
  }
  if (value instanceof Error) {
    refuse(step, value, path, run);
    return undefined;
  }
  if (step.fields !== undefined) return completeObject(step, step.fields, place, value, values, path, run);
  if (step.serialize === undefined) {
    values[place] = value;
    return undefined;
  }
  try {
    values[place] = step.serialize(value);
  } catch (error) {
    refuse(step, error, path, run);
  }
  return undefined;
}

function completeObject(
  { key, selection, isNullable }: Step,
  fields: readonly Step[],
  place: number,
  value: unknown,
  values: Values,
  path: Path | undefined,
  run: Run,
): Promise<unknown> | undefined {
  const shared = selection !== undefined && value instanceof SharedObject ? value : undefined;
  const known = shared?.jsonOf(selection as string);
  if (known !== undefined) {
    count(known.length, run);
    values[place] = known;
    return undefined;
  }
  const child: Values = [];
  const orNull = (reason: unknown) => {
    if (reason !== nulled || !isNullable) throw reason;
    values[place] = null;
  };
  const errorsBefore = run.errors.length;
  values[place] = child;
  try {
    const filling = fill(fields, value, child, { before: path, key }, run);
    if (filling) return filling.catch(orNull);
    if (shared && run.errors.length === errorsBefore) {
      const json = jsonOf(fields, child, run);
      shared.keepJson(selection as string, json);
      values[place] = json;
    }
  } catch (reason) {
    orNull(reason);
  }
  return undefined;
}

/** As `JSON.stringify` would write the object, which it takes several times as long for. */
function jsonOf(steps: readonly Step[], values: Values, run: Run): string {
  let json = '{';
  for (let place = 0; place < steps.length; place += 1) {
    const { prefix, fields } = steps[place] as Step;
    const value = values[place];
    if (place > 0) json += ',';
    json += prefix;
    if (fields === undefined) {
      const text = JSON.stringify(value);
      count(prefix.length + text.length, run);
      json += text;
    } else if (Array.isArray(value)) json += jsonOf(fields, value, run);
    else json += value; // JSON already, or null
  }
  return `${json}}`;
}

/** Counts what is written as it is. Throws {@link tooLarge} once that is more than the answer may be. */
function count(characters: number, run: Run): void {
  run.written += characters;
  if (run.written > run.context.maxAnswerBytes) throw tooLarge;
}

function argumentsOf({ args }: Step, { request, variables }: Run): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const argument of args) {
    const { name } = argument;
    if (argument.from === 'document') values[name] = argument.value;
    else if (argument.from === 'literal') values[name] = request.literals[argument.place];
    else if (Object.hasOwn(variables, argument.variable)) values[name] = variables[argument.variable];
    else if (argument.otherwise !== undefined) values[name] = argument.otherwise;
  }
  return values;
}

/**
 * Notes why a field has no value (undefined: it was null and must not be). Throws {@link nulled} where its null will not
 * do.
 */
function refuse(step: Step, reason: unknown, path: Path | undefined, run: Run): void {
  const { request, template, errors } = run;
  const error = reason ?? new Error(`Cannot return null for non-nullable field ${step.parentType}.${step.name}.`);
  const original = error instanceof Error ? error : new Error('Something else than an error was thrown');
  errors.push(
    new GraphQLError(original.message, {
      source: new Source(request.query),
      positions: step.positions.map((position) => template.positionIn(request.literals, position)),
      path: keysOf({ before: path, key: step.key }),
      originalError: original,
    }),
  );
  if (!step.isNullable) throw nulled;
}

function keysOf(path: Path): string[] {
  const keys: string[] = [];
  for (let at: Path | undefined = path; at !== undefined; at = at.before) keys.unshift(at.key);
  return keys;
}
