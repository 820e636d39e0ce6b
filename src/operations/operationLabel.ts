import { type GraphQLSchema, Kind, type OperationDefinitionNode } from 'graphql';

const labels = new WeakMap<OperationDefinitionNode, string>();

/**
 * What an operation is called in metrics and traces: its root field, as the schema spells it. `several` when it selects
 * more than one or uses a fragment at the root; `none` when there is no valid operation. Never the name a client gave.
 */
export function operationLabel(schema: GraphQLSchema, operation: OperationDefinitionNode | undefined): string {
  if (operation === undefined) return 'none';
  const known = labels.get(operation); // documents are cached, so their nodes come back
  if (known !== undefined) return known;
  const label = labelOf(schema, operation);
  labels.set(operation, label);
  return label;
}

function labelOf(schema: GraphQLSchema, { operation, selectionSet }: OperationDefinitionNode): string {
  const names = new Set(selectionSet.selections.map((one) => (one.kind === Kind.FIELD ? one.name.value : undefined)));
  const [name] = names;
  if (names.size !== 1 || name === undefined) return 'several';
  if (name.startsWith('__')) return 'introspection';
  return schema.getRootType(operation)?.getFields()[name] === undefined ? 'none' : name;
}
