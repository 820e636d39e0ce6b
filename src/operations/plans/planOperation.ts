import { collectSubFields } from '@graphql-tools/utils';
import {
  type ArgumentNode,
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
  parse,
  type SelectionSetNode,
  type ValueNode,
  valueFromAST,
  visit,
} from 'graphql';
import { operationLabel } from '../observeOperations.js';
import { variableReader } from '../variables.js';
import type { Argument, Plan, Resolve, Step } from './Plan.js';

/** Thrown while planning: Apollo is to execute this operation. */
export class NotPlannable extends Error {}

/**
 * The plan of a document that graphql-js has validated. `literalCount`: how many string literals of `text` were emptied and
 * may be any. There is no plan for: several operations, since validation looks at the literals of all; directives, abstract
 * types and lists, which clients' queries of this schema do not have; introspection, `_service` and `_entities`, which
 * routers ask for; several mutations, which have to wait for each other. @throws NotPlannable
 */
export function planOf(schema: GraphQLSchema, text: string, literalCount: number): Plan {
  const document = parse(text);
  const operation = getOperationAST(document) ?? notPlannable(); // null when there are several
  const { operation: type, selectionSet, variableDefinitions = [], name } = operation;
  const isOneMutation = selectionSet.selections.length === 1 && selectionSet.selections[0]?.kind === Kind.FIELD;
  if (type === 'subscription' || (type === 'mutation' && !isOneMutation)) notPlannable();
  const literalStarts = readDocument(document, literalCount);
  const root = schema.getRootType(type) ?? notPlannable();
  const readVariables = variableReader(schema, variableDefinitions);
  const withDefault = variableDefinitions.filter((one) => one.defaultValue).map((one) => one.variable.name.value);
  return {
    type,
    label: operationLabel(schema, operation),
    operationName: name?.value,
    steps: new Planner(schema, document, literalStarts).steps(root, [operation]),
    literalStarts,
    readVariables: (given) => {
      // A null instead of a default may reach an argument that needs a value.
      if (withDefault.some((variable) => given[variable] === null)) return undefined;
      try {
        return readVariables(given, notPlannable);
      } catch {
        return undefined;
      }
    },
  };
}

function notPlannable(): never {
  throw new NotPlannable();
}

/** Refuses documents that have no plan; returns where the literals that vary begin. */
function readDocument(document: DocumentNode, literalCount: number): readonly number[] {
  const starts: number[] = [];
  visit(document, {
    Directive: notPlannable,
    Field: ({ name: { value: name } }) => (name.startsWith('_') && name !== '__typename' ? notPlannable() : undefined),
    Name: ({ value: name }) => (name === '__proto__' ? notPlannable() : undefined),
    // The value of a default is part of the plan, so it must not vary.
    VariableDefinition: ({ defaultValue }) => (literalCount > 0 && defaultValue ? notPlannable() : undefined),
    StringValue: ({ loc }) => void starts.push(loc?.start ?? 0),
  });
  if (literalCount === 0) return [];
  return starts.length === literalCount ? starts : notPlannable();
}

class Planner {
  readonly #fragments: Record<string, FragmentDefinitionNode> = {};

  constructor(
    private readonly schema: GraphQLSchema,
    document: DocumentNode,
    private readonly literalStarts: readonly number[],
  ) {
    for (const definition of document.definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) this.#fragments[definition.name.value] = definition;
    }
  }

  /** The steps for what `nodes`, which are fields or the operation, select of a type. */
  steps(type: GraphQLObjectType, nodes: readonly { readonly selectionSet?: SelectionSetNode | undefined }[]): Step[] {
    if (type.isTypeOf) notPlannable();
    const { fields } = collectSubFields(this.schema, this.#fragments, {}, type, nodes as FieldNode[]);
    return Array.from(fields, ([key, fieldNodes]) => this.#step(type, key, fieldNodes));
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
    const field = parent.getFields()[name] ?? notPlannable();
    // Validation found the arguments of merged fields to be the same; with other literals they may differ.
    const isMerged = nodes.length > 1 && this.literalStarts.length > 0;
    if (isMerged && nodes.some((one) => one.arguments?.length)) notPlannable();
    const type = getNullableType(field.type);
    if (!isLeafType(type) && !isObjectType(type)) notPlannable();
    const isWrittenAsIs = isEnumType(type) || isSpecifiedScalarType(type);
    const fields = isObjectType(type) ? this.steps(type, nodes) : undefined;
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
    const place = this.#literalPlace(node);
    if (place !== -1) {
      const { name: typeName } = getNullableType(type) as { readonly name?: string };
      if (typeName !== 'ID' && typeName !== 'String') notPlannable();
      return { name, from: 'literal', place };
    }
    visit(node, {
      Variable: notPlannable, // its null in the place of a value would only be found when it is read
      StringValue: (text) => (this.#literalPlace(text) === -1 ? undefined : notPlannable()),
    });
    return { name, from: 'document', value: valueFromAST(node, type) };
  }

  /** Which of the literals that vary a node is; -1 for none. */
  #literalPlace({ loc }: ValueNode): number {
    return this.literalStarts.indexOf(loc?.start ?? -1);
  }
}

const maxSelectionLength = 1000;

/**
 * A selection as text, by which its JSON is kept with a shared object. Undefined where a field takes more than reading it,
 * and where the JSON could be much larger than the object, whose size bounds memory: repeated fields, long aliases.
 */
function selectionOf(type: string, fields: readonly Step[]): string | undefined {
  if (fields.some((field) => field.resolve || field.fields)) return undefined;
  if (new Set(fields.map(({ name }) => name)).size < fields.length) return undefined;
  const selection = `${type} ${fields.map(({ key, name }) => `${key}:${name}`).join(' ')}`;
  return selection.length > maxSelectionLength ? undefined : selection;
}
