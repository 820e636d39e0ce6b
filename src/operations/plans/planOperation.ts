import {
  type ArgumentNode,
  BREAK,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNullableType,
  getOperationAST,
  isEnumType,
  isLeafType,
  isNonNullType,
  isObjectType,
  isSpecifiedScalarType,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  typeFromAST,
  valueFromAST,
  visit,
} from 'graphql';
import { operationLabel } from '../observeOperations.js';
import { execute } from './executePlan.js';
import { type Argument, NotPlannable, type Plan, type Resolve, type Step } from './Plan.js';
import { variableReader } from './readVariables.js';
import { TemplateLiterals } from './TemplateLiterals.js';

/**
 * The plan of a document that graphql-js has validated. With `literals`, `text` is a template that has so many, and any
 * strings may be in them. Undefined for what a plan does not answer: several operations in one document, whose literals
 * would have to be checked for those that do not run as well; directives, abstract types and lists, of which a client's
 * query of this schema has none; introspection, `_service` and `_entities`, which are a router's; several mutations, which
 * have to wait for each other.
 */
export function planOf(schema: GraphQLSchema, text: string, literals: number): Plan | undefined {
  try {
    const document = parse(text);
    const operation = getOperationAST(document); // null when there are several
    if (!operation || !isPlannable(document, operation)) return undefined;
    return planned(schema, document, operation, literals);
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
  literals: number,
): Plan {
  const template = new TemplateLiterals(document, literals);
  const root = schema.getRootType(operation.operation);
  if (!root) throw new NotPlannable();
  const steps = new Planner(schema, document, template).steps(root, [operation.selectionSet]);
  const readVariables = variableReader(schema, operation.variableDefinitions ?? []);
  return {
    type: operation.operation as Plan['type'],
    label: operationLabel(schema, operation),
    operationName: operation.name?.value,
    steps,
    prepare: (request) => {
      const variables = readVariables(request.variables);
      return (
        variables && ((context) => execute(steps, { request, template, variables, context, errors: [], written: 0 }))
      );
    },
  };
}

class Planner {
  readonly #schema: GraphQLSchema;
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  readonly #template: TemplateLiterals;

  constructor(schema: GraphQLSchema, document: DocumentNode, template: TemplateLiterals) {
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
    visit(node, {
      // Null in the place of a value that must not be null would only be found when it is read.
      Variable: () => {
        throw new NotPlannable();
      },
      StringValue: (text) => {
        if (this.#template.placeOf(text) !== undefined) throw new NotPlannable();
      },
    });
    return { name, from: 'document', value: valueFromAST(node, type) };
  }
}

const maxSelectionLength = 1000;

/**
 * Undefined when one of the fields takes more than reading it, and when the answer could be much larger than the object,
 * whose size is what memory is bounded by: a field under several names, long names.
 */
function selectionOf(type: string, fields: readonly Step[]): string | undefined {
  if (fields.some((field) => field.resolve || field.fields)) return undefined;
  if (new Set(fields.map(({ name }) => name)).size < fields.length) return undefined;
  const selection = `${type} ${fields.map(({ key, name }) => `${key}:${name}`).join(' ')}`;
  return selection.length > maxSelectionLength ? undefined : selection;
}
