import { collectSubFields } from '@graphql-tools/utils';
import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNullableType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isSpecifiedScalarType,
  isUnionType,
  Kind,
  type Location,
  type OperationDefinitionNode,
  type SelectionSetNode,
  TypeNameMetaFieldDef,
  valueFromAST,
  visit,
} from 'graphql';
import type { Run } from '../KnownOperations.js';
import { type Argument, Execution, type Members, type Resolve, type Step } from './Execution.js';

/** Most steps of a plan. Making a step takes about ten times as long as executing it; keeping it takes about a kilobyte. */
export const maxSteps = 2000;

/** Thrown while planning an operation that cannot have a plan. */
class NotPlannable extends Error {}

/**
 * The plan of an operation that graphql-js has validated. Undefined, so that Apollo executes it, for: directives; lists and
 * abstract types other than `_entities` (this schema has none); introspection and `_service`; several mutations, which must
 * run one after the other; more than {@link maxSteps} steps.
 */
export function planOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Run | undefined {
  try {
    return planned(schema, document, operation);
  } catch (error) {
    if (error instanceof NotPlannable) return undefined;
    throw error;
  }
}

function planned(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Run {
  const { operation: type, selectionSet, variableDefinitions = [] } = operation;
  const isOneMutation = selectionSet.selections.length === 1 && selectionSet.selections[0]?.kind === Kind.FIELD;
  if (type === 'subscription' || (type === 'mutation' && !isOneMutation)) notPlannable();
  assertPlannable(document);
  const root = schema.getRootType(type) ?? notPlannable();
  const nullable = variableDefinitions.filter((one) => one.type.kind !== Kind.NON_NULL_TYPE);
  const names = new Set(nullable.map(({ variable }) => variable.name.value));
  const steps = new Planner(schema, document, names).steps(root, [operation]);
  const { source } = document.loc as Location;
  return (values, context) => new Execution(steps, source, values, context).run();
}

function notPlannable(): never {
  throw new NotPlannable();
}

/** @throws NotPlannable for a document with anything that plans leave to Apollo */
function assertPlannable(document: DocumentNode): void {
  visit(document, {
    Directive: notPlannable,
    Field: ({ name: { value: name } }) => (isForPlans(name) ? undefined : notPlannable()),
    Name: ({ value: name }) => (name === '__proto__' ? notPlannable() : undefined),
  });
}

const isForPlans = (field: string) => !field.startsWith('_') || field === '__typename' || field === '_entities';

class Planner {
  readonly #fragments: Record<string, FragmentDefinitionNode> = {};
  #stepCount = 0;

  constructor(
    private readonly schema: GraphQLSchema,
    document: DocumentNode,
    /** The variables that may be null. */
    private readonly nullable: ReadonlySet<string>,
  ) {
    for (const definition of document.definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) this.#fragments[definition.name.value] = definition;
    }
  }

  /** The steps for the fields of a type that `nodes`, which are fields or the operation, select. */
  steps(type: GraphQLObjectType, nodes: readonly { readonly selectionSet?: SelectionSetNode | undefined }[]): Step[] {
    if (type.isTypeOf) notPlannable();
    const { fields } = collectSubFields(this.schema, this.#fragments, {}, type, nodes as FieldNode[]);
    this.#stepCount += fields.size;
    if (this.#stepCount > maxSteps) notPlannable();
    return Array.from(fields, ([key, fieldNodes]) => this.#step(type, key, fieldNodes));
  }

  #step(parent: GraphQLObjectType, key: string, nodes: readonly FieldNode[]): Step {
    const [node] = nodes as [FieldNode];
    const name = node.name.value;
    const isTypename = name === '__typename';
    const field = isTypename ? TypeNameMetaFieldDef : (parent.getFields()[name] ?? notPlannable());
    const resolve = isTypename ? undefined : (field.resolve as Resolve | undefined);
    const type = getNullableType(field.type);
    const members = this.#members(type, nodes);
    if (!members && !isLeafType(type) && !isObjectType(type)) notPlannable();
    const isWrittenAsIs = isEnumType(type) || (isLeafType(type) && isSpecifiedScalarType(type));
    // No spread: V8 would give each step a hidden class of its own, and a plan would run several times slower.
    return {
      key,
      constant: isTypename ? parent.name : undefined,
      name,
      resolve,
      args: resolve ? this.#arguments(field, node) : [],
      isNullable: !isNonNullType(field.type),
      // Our objects hold strings, booleans and enum values in the form that the answer shows.
      serialize: isLeafType(type) && !isWrittenAsIs ? (value) => type.serialize(value) : undefined,
      fields: isObjectType(type) ? this.steps(type, nodes) : undefined,
      members,
      parentType: parent.name,
      positions: nodes.map(({ loc }) => loc?.start ?? 0),
    };
  }

  /** The selections on the members of a list of a union; undefined for any other type. */
  #members(list: GraphQLOutputType, nodes: readonly FieldNode[]): Members | undefined {
    const type = isListType(list) ? list.ofType : undefined;
    if (!isUnionType(type) || !type.resolveType) return undefined;
    const byType = new Map(type.getTypes().map((member) => [member.name, this.steps(member, nodes)]));
    return { typeOf: type.resolveType as Members['typeOf'], byType };
  }

  #arguments(field: GraphQLField<unknown, unknown>, node: FieldNode): Argument[] {
    return field.args.flatMap(({ name, type, defaultValue }): Argument[] => {
      const given = node.arguments?.find((argument) => argument.name.value === name);
      if (given) return [this.#argument(name, type, defaultValue, given)];
      return defaultValue === undefined ? [] : [{ name, from: 'document', value: defaultValue }];
    });
  }

  #argument(name: string, type: GraphQLInputType, otherwise: unknown, { value: node }: ArgumentNode): Argument {
    // A default lets a variable that may be null stand here: whether it is one is found only when it is read.
    if (node.kind === Kind.VARIABLE && isNonNullType(type) && this.nullable.has(node.name.value)) notPlannable();
    if (node.kind === Kind.VARIABLE) return { name, from: 'variable', variable: node.name.value, otherwise };
    visit(node, { Variable: notPlannable }); // a null where a value is needed would be found only when it is read
    return { name, from: 'document', value: valueFromAST(node, type) };
  }
}
