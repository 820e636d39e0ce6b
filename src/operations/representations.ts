import {
  type DocumentNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql';
import { GatewayError } from '../errors/errors.js';

export interface CheckedOperation {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** Refuses more than `most` representations in all `_entities` of an operation together. @throws GatewayError (400) */
export function refuseManyRepresentations(checked: CheckedOperation, most: number): void {
  let count = 0;
  for (const given of entitiesOf(checked)) count += lengthOf(given, checked);
  if (count <= most) return;
  const message = `must have at most ${most} items in the whole document (MAX_REPRESENTATIONS)`;
  const violations = [{ path: 'representations', message }];
  throw new GatewayError('BAD_USER_INPUT', `representations ${message}`, { violations, httpStatus: 400 });
}

/** What is given to each field `_entities` at the root. Fields of the same key are one, and were found to be given the same. */
function entitiesOf({ document, operation }: CheckedOperation): Iterable<ValueNode | undefined> {
  const found = new Map<string, ValueNode | undefined>();
  const spread = new Set<FragmentDefinitionNode>();
  const collect = ({ selections }: SelectionSetNode) => {
    for (const selection of selections) {
      if (selection.kind === Kind.INLINE_FRAGMENT) collect(selection.selectionSet);
      else if (selection.kind === Kind.FRAGMENT_SPREAD) {
        const fragment = document.definitions.find(
          (each): each is FragmentDefinitionNode =>
            each.kind === Kind.FRAGMENT_DEFINITION && each.name.value === selection.name.value,
        );
        if (fragment === undefined || spread.has(fragment)) continue;
        spread.add(fragment);
        collect(fragment.selectionSet);
      } else if (selection.name.value === '_entities') {
        const given = selection.arguments?.find(({ name }) => name.value === 'representations');
        found.set(selection.alias?.value ?? selection.name.value, given?.value);
      }
    }
  };
  collect(operation.selectionSet);
  return found.values();
}

/** One value in place of a list stands for a list of it. */
function lengthOf(given: ValueNode | undefined, { operation, variables }: CheckedOperation): number {
  if (given?.kind === Kind.LIST) return given.values.length;
  if (given?.kind !== Kind.VARIABLE) return 1;
  const name = given.name.value;
  const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
  if (value !== undefined) return Array.isArray(value) ? value.length : 1;
  const definition = operation.variableDefinitions?.find(({ variable }) => variable.name.value === name);
  return definition?.defaultValue?.kind === Kind.LIST ? definition.defaultValue.values.length : 1;
}
