import {
  type ArgumentNode,
  BREAK,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNullableType,
  getOperationAST,
  isEnumType,
  isInputObjectType,
  isInputType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isSpecifiedScalarType,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  Source,
  type StringValueNode,
  typeFromAST,
  type VariableDefinitionNode,
  valueFromAST,
  visit,
} from 'graphql';
import type { RequestContext } from '../context.js';
import { SharedObject } from '../schema/SharedObject.js';
import { operationLabel } from './operationLabel.js';

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
  /**
   * At once where nothing has to be waited for. Undefined when nothing was executed, because the variables are not plainly
   * right: whether they are wrong, and how, is for others to say.
   */
  readonly run: (
    request: PlannedRequest,
    context: RequestContext,
  ) => PlanResult | undefined | Promise<PlanResult | undefined>;
}

/** One field of an answer. */
interface Step {
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

type Resolve = (source: unknown, args: Record<string, unknown>, context: RequestContext) => unknown;

type Argument = { readonly name: string } & (
  | { readonly from: 'document'; readonly value: unknown }
  | { readonly from: 'variable'; readonly variable: string; readonly otherwise: unknown }
  | { readonly from: 'literal'; readonly place: number }
  | { readonly from: 'input'; readonly read: (variables: Variables) => unknown }
);

/** One execution. */
interface Run {
  readonly request: PlannedRequest;
  readonly template: Literals;
  readonly variables: Variables;
  readonly context: RequestContext;
  readonly errors: GraphQLError[];
}

interface Path {
  readonly before: Path | undefined;
  readonly key: string;
}

/** Thrown while planning: graphql-js is to execute this operation. */
class NotPlannable extends Error {}

/** Thrown while executing: the error is noted, and the object that needed the value is null. */
const nulled = Symbol('nulled');

/**
 * The plan of an operation that graphql-js has validated. `hasLiterals`: `text` is a template, and any strings may be
 * in its literals. Undefined for what a plan does not answer: directives, abstract types and lists, of which a client's
 * query of this schema has none; introspection, `_service` and `_entities`, which are a router's; several mutations, which have
 * to wait for each other.
 */
export function planOf(
  schema: GraphQLSchema,
  text: string,
  operationName: string | undefined,
  hasLiterals: boolean,
): Plan | undefined {
  try {
    const document = parse(text);
    const operation = getOperationAST(document, operationName);
    if (!operation || !isPlannable(document, operation)) return undefined;
    return planned(schema, document, operation, hasLiterals);
  } catch (error) {
    if (error instanceof NotPlannable) return undefined;
    throw error;
  }
}

function isPlannable(document: DocumentNode, { operation, selectionSet }: OperationDefinitionNode): boolean {
  const [first, ...others] = selectionSet.selections;
  const isOneMutation = operation === 'mutation' && first?.kind === Kind.FIELD && others.length === 0;
  let plannable = operation === 'query' || isOneMutation;
  const refuse = () => {
    plannable = false;
    return BREAK;
  };
  visit(document, {
    Directive: refuse,
    Field: ({ name: { value: name } }) => (name.startsWith('_') && name !== '__typename' ? refuse() : undefined),
    Name: ({ value: name }) => (name === '__proto__' ? refuse() : undefined),
  });
  return plannable;
}

function planned(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  hasLiterals: boolean,
): Plan {
  const template = new Literals(document, hasLiterals);
  const root = schema.getRootType(operation.operation);
  if (!root) throw new NotPlannable();
  const steps = new Planner(schema, document, template).steps(root, [operation.selectionSet]);
  const readVariables = variableReader(schema, operation.variableDefinitions ?? []);
  return {
    type: operation.operation as Plan['type'],
    label: operationLabel(schema, operation),
    run: (request, context) => {
      const variables = readVariables(request.variables);
      return variables && execute(steps, { request, template, variables, context, errors: [] });
    },
  };
}

/** Which of the string literals of a template is which. */
class Literals {
  /** Where they begin, in ascending order. */
  readonly #starts: number[] = [];
  readonly #places: ReadonlyMap<number, number>;

  constructor(document: DocumentNode, exist: boolean) {
    if (exist) this.#findIn(document);
    this.#places = new Map(this.#starts.map((start, place) => [start, place]));
  }

  #findIn(document: DocumentNode): void {
    visit(document, {
      // A default is no argument, and its value is needed now.
      VariableDefinition: ({ defaultValue }) => {
        if (defaultValue) throw new NotPlannable();
      },
      StringValue: ({ loc }) => void this.#starts.push(loc?.start ?? 0),
    });
    this.#starts.sort((a, b) => a - b);
  }

  /** Undefined when the text of the literal is in the document. */
  placeOf({ loc }: StringValueNode): number | undefined {
    return this.#places.get(loc?.start ?? -1);
  }

  get exist(): boolean {
    return this.#starts.length > 0;
  }

  /** Where in the text that was sent a position of the template is. */
  positionIn({ literals }: PlannedRequest, position: number): number {
    let moved = position;
    for (let place = 0; place < literals.length && (this.#starts[place] ?? 0) < position; place += 1) {
      moved += literals[place]?.length ?? 0;
    }
    return moved;
  }
}

class Planner {
  readonly #schema: GraphQLSchema;
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  readonly #template: Literals;

  constructor(schema: GraphQLSchema, document: DocumentNode, template: Literals) {
    this.#schema = schema;
    this.#template = template;
    for (const definition of document.definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) this.#fragments.set(definition.name.value, definition);
    }
  }

  /** The fields that are selected of a type, each once, in the order of their first appearance (GraphQL, section 6.3.2). */
  steps(type: GraphQLObjectType, selectionSets: readonly SelectionSetNode[]): readonly Step[] {
    if (type.isTypeOf) throw new NotPlannable();
    const fields = new Map<string, FieldNode[]>();
    const spread = new Set<string>();
    for (const selectionSet of selectionSets) this.#collect(type, selectionSet, fields, spread);
    return Array.from(fields, ([key, nodes]) => this.#step(type, key, nodes));
  }

  #collect(
    type: GraphQLObjectType,
    { selections }: SelectionSetNode,
    fields: Map<string, FieldNode[]>,
    spread: Set<string>,
  ): void {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        const key = selection.alias?.value ?? selection.name.value;
        fields.set(key, [...(fields.get(key) ?? []), selection]);
        continue;
      }
      const isNamed = selection.kind === Kind.FRAGMENT_SPREAD;
      if (isNamed && spread.has(selection.name.value)) continue;
      if (isNamed) spread.add(selection.name.value);
      const fragment = isNamed ? this.#fragments.get(selection.name.value) : selection;
      const condition = fragment?.typeCondition && typeFromAST(this.#schema, fragment.typeCondition);
      if (fragment === undefined || (condition && !isObjectType(condition))) throw new NotPlannable();
      if (condition === undefined || condition === type) this.#collect(type, fragment.selectionSet, fields, spread);
    }
  }

  #step(parent: GraphQLObjectType, key: string, nodes: readonly FieldNode[]): Step {
    const [node] = nodes as [FieldNode];
    const name = node.name.value;
    const common = {
      key,
      prefix: `${JSON.stringify(key)}:`,
      name,
      parentType: parent.name,
      positions: nodes.map(({ loc }) => loc?.start ?? 0),
    };
    if (name === '__typename') {
      const none = { resolve: undefined, args: [], serialize: undefined, fields: undefined, selection: undefined };
      return { ...common, ...none, constant: parent.name, isNullable: false };
    }
    const field = parent.getFields()[name];
    if (field === undefined) throw new NotPlannable();
    // Fields that are merged were found to have the same arguments, which other literals might not be.
    const isMerged = nodes.length > 1 && this.#template.exist;
    if (isMerged && nodes.some((one) => one.arguments?.length)) throw new NotPlannable();
    const type = getNullableType(field.type);
    if (!isLeafType(type) && !isObjectType(type)) throw new NotPlannable();
    const isWrittenAsIs = isEnumType(type) || isSpecifiedScalarType(type);
    const selectionSets = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    const fields = isObjectType(type) ? this.steps(type, selectionSets) : undefined;
    return {
      ...common,
      constant: undefined,
      resolve: field.resolve as Resolve | undefined,
      args: field.resolve ? this.#arguments(field, node) : [],
      isNullable: !isNonNullType(field.type),
      // Our objects hold strings, booleans and names of enum values as they are to be written.
      serialize: isLeafType(type) && !isWrittenAsIs ? (value) => type.serialize(value) : undefined,
      fields,
      selection: fields && selectionOf(type.name, fields),
    };
  }

  #arguments(field: GraphQLField<unknown, unknown>, node: FieldNode): Argument[] {
    return field.args.flatMap(({ name, type, defaultValue }): Argument[] => {
      const given = node.arguments?.find((argument) => argument.name.value === name);
      if (given) return [this.#argument(name, type, defaultValue, given)];
      return defaultValue === undefined ? [] : [{ name, from: 'document', value: defaultValue }];
    });
  }

  #argument(name: string, type: GraphQLInputType, otherwise: unknown, { value: node }: ArgumentNode): Argument {
    if (node.kind === Kind.VARIABLE) return { name, from: 'variable', variable: node.name.value, otherwise };
    const place = node.kind === Kind.STRING ? this.#template.placeOf(node) : undefined;
    if (place !== undefined) {
      const { name: typeName } = getNullableType(type) as { readonly name?: string };
      if (typeName !== 'ID' && typeName !== 'String') throw new NotPlannable();
      return { name, from: 'literal', place };
    }
    if (node.kind !== Kind.OBJECT && node.kind !== Kind.LIST) {
      return { name, from: 'document', value: valueFromAST(node, type) };
    }
    let hasVariables = false;
    visit(node, {
      Variable: () => {
        hasVariables = true;
      },
      StringValue: (text) => {
        if (this.#template.placeOf(text) !== undefined) throw new NotPlannable();
      },
    });
    if (!hasVariables) return { name, from: 'document', value: valueFromAST(node, type) };
    return { name, from: 'input', read: (variables) => valueFromAST(node, type, variables) };
  }
}

/** Undefined when one of the fields takes more than reading it. */
function selectionOf(type: string, fields: readonly Step[]): string | undefined {
  if (fields.some((field) => field.resolve || field.fields)) return undefined;
  return `${type} ${fields.map(({ key, name }) => `${key}:${name}`).join(' ')}`;
}

/**
 * Reads the variables of an operation: undefined unless each is of the type it should have, without a number for an id or a
 * null where a default was meant, because for such cases there are rules upon rules.
 */
function variableReader(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
): (given: Variables) => Variables | undefined {
  const readers = definitions.map(({ variable, type: typeNode, defaultValue }) => {
    const type = typeFromAST(schema, typeNode as never) as GraphQLInputType | undefined;
    if (!type || !isInputType(type)) throw new NotPlannable();
    const isNullable = !isNonNullType(type);
    const hasDefault = defaultValue !== undefined;
    return {
      name: variable.name.value,
      mayBeAbsent: isNullable || hasDefault,
      mayBeNull: isNullable && !hasDefault,
      hasDefault,
      default: defaultValue && valueFromAST(defaultValue, type),
      read: inputReader(getNullableType(type)),
      isPlain: isLeafType(getNullableType(type)) && (getNullableType(type) as { name: string }).name in plainly,
    };
  });
  const areAsGiven = readers.every(({ isPlain, hasDefault }) => isPlain && !hasDefault);
  return (given) => {
    const values: Record<string, unknown> = areAsGiven ? given : {};
    for (const { name, mayBeAbsent, mayBeNull, hasDefault, default: otherwise, read } of readers) {
      if (!Object.hasOwn(given, name)) {
        if (!mayBeAbsent) return undefined;
        if (hasDefault) values[name] = otherwise;
        continue;
      }
      const value = given[name];
      if (value === null && !mayBeNull) return undefined;
      const input = value === null ? null : read(value);
      if (input === undefined) return undefined;
      if (!areAsGiven) values[name] = input;
    }
    return values;
  };
}

/** From a value that is not null to the input it stands for; undefined when it is not plainly right. */
type InputReader = (value: unknown) => unknown;

function inputReader(type: GraphQLInputType): InputReader {
  if (isListType(type)) {
    const readItem = nullableReader(type.ofType as GraphQLInputType);
    return (value) => {
      if (!Array.isArray(value)) return undefined;
      const items = value.map(readItem);
      return items.includes(undefined) ? undefined : items;
    };
  }
  if (isInputObjectType(type)) {
    if (type.isOneOf) throw new NotPlannable();
    const fields = Object.values(type.getFields());
    const readers = fields.map((field) => ({ ...field, read: nullableReader(field.type) }));
    return (value) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
      const input: Record<string, unknown> = {};
      let found = 0;
      for (const { name, type: fieldType, defaultValue, read } of readers) {
        if (!Object.hasOwn(value, name)) {
          if (defaultValue !== undefined) input[name] = defaultValue;
          else if (isNonNullType(fieldType)) return undefined;
          continue;
        }
        found += 1;
        input[name] = read((value as Record<string, unknown>)[name]);
        if (input[name] === undefined) return undefined;
      }
      return found === Object.keys(value).length ? input : undefined;
    };
  }
  const leaf = getNullableType(type);
  if (!isLeafType(leaf)) throw new NotPlannable();
  const isRight = plainly[leaf.name];
  if (isRight) return (value) => (isRight(value) ? value : undefined);
  return (value) => {
    try {
      return leaf.parseValue(value) ?? undefined;
    } catch {
      return undefined;
    }
  };
}

function nullableReader(type: GraphQLInputType): InputReader {
  const read = inputReader(getNullableType(type));
  const isNullable = !isNonNullType(type);
  return (value) => (value === null ? (isNullable ? null : undefined) : read(value));
}

const plainly: Readonly<Record<string, (value: unknown) => boolean>> = {
  ID: (value) => typeof value === 'string',
  String: (value) => typeof value === 'string',
  Boolean: (value) => typeof value === 'boolean',
  Int: (value) => typeof value === 'number' && (value | 0) === value && !Object.is(value, -0),
};

/** The values of an object's fields in the order of its steps; of an object they are such a list again, or its JSON. */
type Values = unknown[];

function execute(steps: readonly Step[], run: Run): PlanResult | Promise<PlanResult> {
  const values: Values = [];
  const result = (json: string): PlanResult => ({ json, errors: run.errors.length > 0 ? run.errors : undefined });
  const orNulled = (reason: unknown): PlanResult => {
    if (reason !== nulled) throw reason;
    return result('null');
  };
  try {
    const filling = fill(steps, undefined, values, undefined, run);
    return filling ? filling.then(() => result(jsonOf(steps, values)), orNulled) : result(jsonOf(steps, values));
  } catch (reason) {
    return orNulled(reason);
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
    if (shared && run.errors.length === errorsBefore) shared.keepJson(selection as string, jsonOf(fields, child));
  } catch (reason) {
    orNull(reason);
  }
  return undefined;
}

/** As `JSON.stringify` would write the object, which it takes several times as long for. */
function jsonOf(steps: readonly Step[], values: Values): string {
  let json = '{';
  for (let place = 0; place < steps.length; place += 1) {
    const { prefix, fields } = steps[place] as Step;
    const value = values[place];
    if (place > 0) json += ',';
    json += prefix;
    if (fields === undefined) json += JSON.stringify(value);
    else if (Array.isArray(value)) json += jsonOf(fields, value);
    else json += value; // JSON already, or null
  }
  return `${json}}`;
}

function argumentsOf({ args }: Step, { request, variables }: Run): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const argument of args) {
    const { name } = argument;
    if (argument.from === 'document') values[name] = argument.value;
    else if (argument.from === 'literal') values[name] = request.literals[argument.place];
    else if (argument.from === 'input') values[name] = argument.read(variables);
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
      positions: step.positions.map((position) => template.positionIn(request, position)),
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
