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
  getOperationAST,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isSpecifiedScalarType,
  isUnionType,
  Kind,
  parse,
  type SelectionSetNode,
  TypeNameMetaFieldDef,
  valueFromAST,
  visit,
} from 'graphql';
import { operationLabel } from '../observeOperations.js';
import { mayAnswer, rootFieldsOf } from '../operationSize.js';
import { variableReader } from '../variables.js';
import type { Argument, Members, Plan, Resolve, Step } from './Plan.js';

/** Most steps of a plan. Making a step takes about ten times as long as executing it; keeping it takes about a kilobyte. */
const maxSteps = 2000;

/** Thrown while planning an operation that cannot have a plan: Apollo executes it instead. */
export class NotPlannable extends Error {}

/**
 * Makes the plan of a document that graphql-js has validated. There is no plan for: several operations; directives; lists and
 * abstract types other than `_entities` (this schema has none); introspection and `_service`; several mutations, which must
 * run one after the other; more than {@link maxSteps} steps. @throws NotPlannable
 */
export function planOf(schema: GraphQLSchema, text: string, maxRepresentations: number): Plan {
  const document = parse(text);
  const operation = getOperationAST(document) ?? notPlannable(); // null when there are several
  const { operation: type, selectionSet, variableDefinitions = [], name } = operation;
  const isOneMutation = selectionSet.selections.length === 1 && selectionSet.selections[0]?.kind === Kind.FIELD;
  if (type === 'subscription' || (type === 'mutation' && !isOneMutation)) notPlannable();
  assertPlannable(document);
  const root = schema.getRootType(type) ?? notPlannable();
  const readVariables = variableReader(schema, variableDefinitions);
  const withDefault = variableDefinitions.filter((one) => one.defaultValue).map((one) => one.variable.name.value);
  const steps = new Planner(schema, document).steps(root, [operation]);
  const entities = steps.filter(({ members }) => members);
  const representations = variableOf(entities[0]?.args[0]);
  // Representations must be counted: one variable must have them all.
  if (entities.length > 1 || (entities.length === 1 && representations === undefined)) notPlannable();
  const { fieldsWith } = rootFieldsOf(schema, document, operation, {});
  return {
    type,
    label: operationLabel(schema, operation, document),
    operationName: name?.value,
    steps,
    readVariables: (given) => {
      const represented = representations && given[representations];
      if (Array.isArray(represented)) {
        const { length } = represented;
        if (length > maxRepresentations || !mayAnswer(fieldsWith(() => length))) return undefined;
      }
      // An explicit null overrides the default, and could reach an argument that must not be null.
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

/** @throws NotPlannable for a document with anything that plans leave to Apollo */
function assertPlannable(document: DocumentNode): void {
  visit(document, {
    Directive: notPlannable,
    Field: ({ name: { value: name } }) => (isForPlans(name) ? undefined : notPlannable()),
    Name: ({ value: name }) => (name === '__proto__' ? notPlannable() : undefined),
  });
}

const variableOf = (argument: Argument | undefined) => (argument?.from === 'variable' ? argument.variable : undefined);
const isForPlans = (field: string) => !field.startsWith('_') || field === '__typename' || field === '_entities';

class Planner {
  readonly #fragments: Record<string, FragmentDefinitionNode> = {};
  #stepCount = 0;

  constructor(
    private readonly schema: GraphQLSchema,
    document: DocumentNode,
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
    if (node.kind === Kind.VARIABLE) return { name, from: 'variable', variable: node.name.value, otherwise };
    visit(node, { Variable: notPlannable }); // a null where a value is needed would be found only when it is read
    return { name, from: 'document', value: valueFromAST(node, type) };
  }
}
