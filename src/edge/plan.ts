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
import { operationLabel } from './operationLabel.js';

export type Variables = Readonly<Record<string, unknown>>;

/** What an operation came to; errors are not masked yet. */
export interface PlanResult {
  readonly data: Record<string, unknown> | null;
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
  readonly #starts: number[] = [];

  constructor(document: DocumentNode, exist: boolean) {
    if (!exist) return;
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
    const place = this.#starts.indexOf(loc?.start ?? -1);
    return place === -1 ? undefined : place;
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
    const common = { key, name, parentType: parent.name, positions: nodes.map(({ loc }) => loc?.start ?? 0) };
    if (name === '__typename') {
      const none = { resolve: undefined, args: [], serialize: undefined, fields: undefined };
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
    return {
      ...common,
      constant: undefined,
      resolve: field.resolve as Resolve | undefined,
      args: field.resolve ? this.#arguments(field, node) : [],
      isNullable: !isNonNullType(field.type),
      // Our objects hold strings, booleans and names of enum values as they are to be written.
      serialize: isLeafType(type) && !isWrittenAsIs ? (value) => type.serialize(value) : undefined,
      fields: isObjectType(type)
        ? this.steps(
            type,
            nodes.flatMap(({ selectionSet }) => selectionSet ?? []),
          )
        : undefined,
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
    if (node.kind === Kind.STRING && this.#template.placeOf(node) !== undefined) {
      const { name: typeName } = getNullableType(type) as { readonly name?: string };
      if (typeName !== 'ID' && typeName !== 'String') throw new NotPlannable();
      return { name, from: 'literal', place: this.#template.placeOf(node) as number };
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

function execute(steps: readonly Step[], run: Run): PlanResult | Promise<PlanResult> {
  const data: Record<string, unknown> = {};
  const result = (isNulled: boolean): PlanResult => ({
    data: isNulled ? null : data,
    errors: run.errors.length > 0 ? run.errors : undefined,
  });
  const orNulled = (reason: unknown): PlanResult => {
    if (reason !== nulled) throw reason;
    return result(true);
  };
  try {
    const filling = fill(steps, undefined, data, undefined, run);
    return filling ? filling.then(() => result(false), orNulled) : result(false);
  } catch (reason) {
    return orNulled(reason);
  }
}

/** Puts the fields of an object into `target`. Throws or rejects with {@link nulled} when it has to be null. */
function fill(
  steps: readonly Step[],
  source: unknown,
  target: Record<string, unknown>,
  path: Path | undefined,
  run: Run,
): Promise<unknown> | undefined {
  let waiting: Promise<unknown>[] | undefined;
  try {
    for (const step of steps) {
      if (step.constant !== undefined) {
        target[step.key] = step.constant;
        continue;
      }
      let value: unknown;
      if (step.resolve === undefined) value = (source as Record<string, unknown>)[step.name];
      else {
        try {
          value = step.resolve(source, argumentsOf(step, run), run.context);
        } catch (error) {
          target[step.key] = refused(step, error, path, run);
          continue;
        }
      }
      if (value instanceof Promise) {
        target[step.key] = null; // its place in the order
        waiting ??= [];
        waiting.push(
          value.then(
            (ready) => complete(step, ready, target, path, run),
            (error) => {
              target[step.key] = refused(step, error, path, run);
            },
          ),
        );
        continue;
      }
      const completing = complete(step, value, target, path, run);
      if (completing) {
        waiting ??= [];
        waiting.push(completing);
      }
    }
  } catch (reason) {
    if (waiting) Promise.all(waiting).catch(() => {}); // nobody waits for the others any more
    throw reason;
  }
  return waiting && Promise.all(waiting);
}

function complete(
  step: Step,
  value: unknown,
  target: Record<string, unknown>,
  path: Path | undefined,
  run: Run,
): Promise<unknown> | undefined {
  const { key, fields, serialize } = step;
  if (value === null || value === undefined) {
    target[key] = step.isNullable ? null : refused(step, undefined, path, run);
    return undefined;
  }
  if (value instanceof Error) {
    target[key] = refused(step, value, path, run);
    return undefined;
  }
  if (fields === undefined) {
    try {
      target[key] = serialize ? serialize(value) : value;
    } catch (error) {
      target[key] = refused(step, error, path, run);
    }
    return undefined;
  }
  const child: Record<string, unknown> = {};
  target[key] = child;
  const orNull = (reason: unknown) => {
    if (reason !== nulled || !step.isNullable) throw reason;
    target[key] = null;
  };
  try {
    return fill(fields, value, child, { before: path, key }, run)?.catch(orNull);
  } catch (reason) {
    orNull(reason);
    return undefined;
  }
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

/** Notes why a field has no value (undefined: it was null and must not be); null where that will do. */
function refused(step: Step, reason: unknown, path: Path | undefined, run: Run): null {
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
  return null;
}

function keysOf(path: Path): string[] {
  const keys: string[] = [];
  for (let at: Path | undefined = path; at !== undefined; at = at.before) keys.unshift(at.key);
  return keys;
}
