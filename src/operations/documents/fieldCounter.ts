import { type FieldNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from 'graphql';

/** What selects fields: a field, a fragment or an operation. */
type Selecting = { readonly selectionSet?: SelectionSetNode | undefined };

/**
 * Counts the fields that something selects, each as often as a fragment spreads it. `countOf` says for how many one field
 * stands, of which `within` are those that it selects itself.
 */
export function fieldCounter(
  fragmentOf: (name: string) => FragmentDefinitionNode | null | undefined,
  countOf: (field: FieldNode, within: (field: FieldNode) => number) => number,
): (selecting: Selecting | null | undefined) => number {
  const counted = new Map<string, number>();
  const count = (selecting: Selecting | null | undefined): number =>
    selecting?.selectionSet?.selections.reduce((sum, selection) => {
      if (selection.kind === Kind.FIELD) return sum + countOf(selection, count);
      if (selection.kind === Kind.INLINE_FRAGMENT) return sum + count(selection);
      return sum + countOfFragment(selection.name.value);
    }, 0) ?? 0;
  const countOfFragment = (name: string): number => {
    if (!counted.has(name)) {
      counted.set(name, 0); // within itself, a cycle adds nothing
      counted.set(name, count(fragmentOf(name)));
    }
    return counted.get(name) ?? 0;
  };
  return count;
}
