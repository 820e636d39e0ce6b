import {
  type DefinitionNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { GatewayError } from '../errors/errors.js';

/** How large an operation may be; the setting of each is MAX_ and its name. */
export interface OperationLimits {
  readonly bodyBytes: number;
  readonly metadataDepth: number;
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  readonly rootFields: number;
  readonly mutationFields: number;
  readonly tokens: number;
  readonly representations: number;
}

/** What is counted of an operation, or of a part of it. A fragment counts as often as it is spread. */
export interface Size {
  /** Levels of fields, introspection not counted. */
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  readonly rootFields: number;
  readonly fields: number;
}

/** What selects fields or carries directives: a field, a fragment, a spread or an operation. */
interface Counted {
  readonly directives?: readonly unknown[] | undefined;
  readonly selectionSet?: SelectionSetNode | undefined;
}

const nothing: Size = { depth: 0, aliases: 0, directives: 0, rootFields: 0, fields: 0 };

/** Sizes of the operations of a document, found in one walk: each fragment is counted once, however often it is spread. */
export function sizeIn(document: DocumentNode): (node: Counted) => Size {
  const known = new Map<string, Size>();
  const sizeOf = (node: Counted | undefined): Size => {
    let { depth, aliases, directives, rootFields, fields } = nothing;
    directives += node?.directives?.length ?? 0;
    for (const selection of node?.selectionSet?.selections ?? []) {
      const within = selection.kind === Kind.FRAGMENT_SPREAD ? sizeOfFragment(selection.name.value) : sizeOf(selection);
      aliases += within.aliases;
      directives += within.directives;
      fields += within.fields;
      if (selection.kind === Kind.FIELD) {
        depth = Math.max(depth, selection.name.value.startsWith('__') ? 0 : 1 + within.depth);
        if (selection.alias) aliases += 1;
        rootFields += 1;
        fields += 1;
      } else {
        if (selection.kind === Kind.FRAGMENT_SPREAD) directives += selection.directives?.length ?? 0;
        depth = Math.max(depth, within.depth);
        rootFields += within.rootFields;
      }
    }
    return { depth, aliases, directives, rootFields, fields };
  };
  const sizeOfFragment = (name: string): Size => {
    const size = known.get(name);
    if (size !== undefined) return size;
    known.set(name, nothing); // a fragment that spreads itself adds nothing; validation refuses it
    const found = sizeOf(fragmentIn(document, name));
    known.set(name, found);
    return found;
  };
  return sizeOf;
}

/** The root fields of an operation, each as often as it is spread: only for one whose {@link Size} is within the limits. */
export function rootFieldsOf(document: DocumentNode, { selectionSet }: OperationDefinitionNode): readonly FieldNode[] {
  const fieldsOf = (set: SelectionSetNode | undefined): readonly FieldNode[] =>
    set?.selections.flatMap((one) => {
      if (one.kind === Kind.FIELD) return [one];
      return fieldsOf(
        one.kind === Kind.INLINE_FRAGMENT ? one.selectionSet : fragmentIn(document, one.name.value)?.selectionSet,
      );
    }) ?? [];
  return fieldsOf(selectionSet);
}

function fragmentIn({ definitions }: DocumentNode, name: string): FragmentDefinitionNode | undefined {
  const isIt = (one: DefinitionNode) => one.kind === Kind.FRAGMENT_DEFINITION && one.name.value === name;
  return definitions.find(isIt) as FragmentDefinitionNode | undefined;
}

/** One error for each limit that an operation exceeds, with its setting if it has one. They tell nothing of the schema. */
export function excessOf(size: Size, { operation }: OperationDefinitionNode, limits: OperationLimits): GatewayError[] {
  const rules: (readonly [counted: string, count: number, most: number])[] = [
    ['levels of fields (MAX_DEPTH)', size.depth, limits.depth],
    ['aliases (MAX_ALIASES)', size.aliases, limits.aliases],
    ['directives', size.directives, limits.directives],
    ['root fields', size.rootFields, limits.rootFields],
  ];
  if (operation === 'mutation') rules.push(['fields in a mutation', size.rootFields, limits.mutationFields]);
  return rules.flatMap(([counted, count, most]) => {
    if (count <= most) return [];
    return new GatewayError('GRAPHQL_VALIDATION_FAILED', `The document must have at most ${most} ${counted}`);
  });
}
