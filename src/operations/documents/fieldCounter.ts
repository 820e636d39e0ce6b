import { type FieldNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from 'graphql';

/** What selects fields: a field, a fragment or an operation. */
type Selecting = { readonly selectionSet?: SelectionSetNode | undefined };

/**
 * Returns a function that counts the fields a node selects, each as often as fragments spread it. `countOf` says how many
 * fields one field counts for; its argument `within` counts the fields below a field.
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
      counted.set(name, 0); // a fragment that spreads itself adds nothing
      counted.set(name, count(fragmentOf(name)));
    }
    return counted.get(name) ?? 0;
  };
  return count;
}
