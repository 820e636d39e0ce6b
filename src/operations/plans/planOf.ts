import { collectSubFields } from '@graphql-tools/utils';
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNullableType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isUnionType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  TypeNameMetaFieldDef,
  visit,
} from 'graphql';
import type { Variables } from '../GraphQLRequest.js';
import type { OperationContext, Result } from '../Operation.js';
import { Execution, type Step } from './Execution.js';

/** Executes an operation; a subscription once, for one `event`. Throws or rejects only because of a bug. */
export type Run = (values: Variables, context: OperationContext, event?: unknown) => Result | Promise<Result>;

/** Thrown while planning an operation that cannot have a plan. */
class NotPlannable extends Error {}

/**
 * Returns what answers an operation as graphql-js would, in a fraction of the time. Undefined, so that Apollo executes it, for
 * an operation with directives or introspection, and for mutations, which call the service anyway, and must run one after the
 * other. Also for what this schema does not have: interfaces, lists of items that are never null, and defaults of arguments.
 */
export function planOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  { operation: type, selectionSet }: OperationDefinitionNode,
): Run | undefined {
  const root = schema.getRootType(type);
  if (!root || type === 'mutation') return undefined;
  try {
    visit(document, {
      Directive: notPlannable,
      // As a key, this name would set the prototype of the answer.
      Name: ({ value: name }) => (name === '__proto__' ? notPlannable() : undefined),
    });
    const steps = plannerFor(schema, document)(root, [{ selectionSet }]);
    return (values, context, event) => new Execution(values, context).run(steps, event);
  } catch (error) {
    if (error instanceof NotPlannable) return undefined;
    throw error;
  }
}

function notPlannable(): never {
  throw new NotPlannable();
}

/** Returns a function that makes the steps for the fields that `parents`, which are fields or the operation, select on a type. */
function plannerFor(schema: GraphQLSchema, document: DocumentNode) {
  const fragments: Record<string, FragmentDefinitionNode> = {};
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments[definition.name.value] = definition;
  }
  return stepsFor;

  function stepsFor(
    type: GraphQLObjectType,
    parents: readonly { readonly selectionSet?: SelectionSetNode | undefined }[],
  ): Step[] {
    const { fields } = collectSubFields(schema, fragments, {}, type, parents as FieldNode[]);
    return Array.from(fields, ([key, fieldNodes]) => {
      const nodes = fieldNodes as [FieldNode, ...FieldNode[]];
      const name = nodes[0].name.value;
      const field = name === '__typename' ? TypeNameMetaFieldDef : (type.getFields()[name] ?? notPlannable());
      return stepFor(type, key, field, field.type, nodes);
    });
  }

  /** The step for a field, or for each member of its list. */
  function stepFor(
    parent: GraphQLObjectType,
    key: string,
    field: GraphQLField<unknown, unknown>,
    declaredType: GraphQLOutputType,
    nodes: Step['nodes'],
  ): Step {
    const type = getNullableType(declaredType);
    const union = isUnionType(type) ? type : undefined;
    const isList = isListType(type) && !isNonNullType(type.ofType);
    if (!isLeafType(type) && !isObjectType(type) && !union && !isList) notPlannable();
    if (field.args.some(({ defaultValue }) => defaultValue !== undefined)) notPlannable();
    // No spread: V8 would give each step a hidden class of its own, and a plan would run several times slower.
    return {
      key,
      constant: field === TypeNameMetaFieldDef ? parent.name : undefined,
      field,
      resolve: field.resolve as Step['resolve'],
      nodes,
      isNullable: !isNonNullType(declaredType),
      leaf: isLeafType(type) ? type : undefined,
      fields: isObjectType(type) ? stepsFor(type, nodes) : undefined,
      byType: union && new Map(union.getTypes().map((member) => [member.name, stepsFor(member, nodes)])),
      member: isList ? stepFor(parent, key, field, type.ofType, nodes) : undefined,
    };
  }
}
