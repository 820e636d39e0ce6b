import {
  type DocumentNode,
  type ExecutableDefinitionNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
} from 'graphql';
import type { Config } from '../config/config.js';
import { GatewayError } from '../errors/errors.js';

const maxDirectives = 50;
const maxRootFields = 60;
const maxMutationFields = 5;

const emptySize = {
  /** Levels of fields, introspection not counted. */
  depth: 0,
  aliases: 0,
  directives: 0,
  /** Directives of the operation, of its root fields, and of the fragments that hold these. */
  rootDirectives: 0,
  rootFields: 0,
  /** Bounded by `fieldsFor` in `KnownOperations.ts`, which knows the representations as well. */
  fields: 0,
};
const sums = ['aliases', 'directives', 'rootDirectives', 'rootFields', 'fields'] as const;

/** What is counted of an operation, or of a part of it. A fragment counts as often as it is spread. */
type Size = Readonly<typeof emptySize>;
type Part = ExecutableDefinitionNode | SelectionNode;

/** Returns a function that sizes parts of a document. Each fragment is walked only once, however often it is spread. */
export function sizeIn(document: DocumentNode): (node: Part) => Size {
  const known = new Map<Part, Size>();
  return function sizeOf(node: Part): Size {
    const before = known.get(node);
    if (before !== undefined) return before;
    const isFragment = node.kind === Kind.FRAGMENT_DEFINITION;
    if (isFragment) known.set(node, emptySize); // one that spreads itself adds nothing; validation refuses it
    const directives = node.directives?.length ?? 0;
    const size = { ...emptySize, directives, rootDirectives: directives };
    for (const part of partsOf(document, node)) {
      const added = sizeOf(part);
      size.depth = Math.max(size.depth, added.depth);
      for (const counted of sums) size[counted] += added[counted];
    }
    if (node.kind === Kind.FIELD) {
      size.depth = node.name.value.startsWith('__') ? 0 : size.depth + 1;
      if (node.alias) size.aliases += 1;
      size.fields += 1;
      size.rootFields = 1;
      size.rootDirectives = directives;
    }
    if (isFragment) known.set(node, size);
    return size;
  };
}

/** The root fields of an operation, each as often as it is spread. Only for one whose {@link Size} is within the limits. */
export function rootFieldsOf(document: DocumentNode, node: Part): readonly FieldNode[] {
  return partsOf(document, node).flatMap((part) => (part.kind === Kind.FIELD ? part : rootFieldsOf(document, part)));
}

/** What is selected by an operation, a fragment or a field; of a spread: its fragment. */
function partsOf({ definitions }: DocumentNode, node: Part): readonly Part[] {
  if (node.kind !== Kind.FRAGMENT_SPREAD) return node.selectionSet?.selections ?? [];
  return definitions.filter(
    (one): one is FragmentDefinitionNode => one.kind === Kind.FRAGMENT_DEFINITION && one.name.value === node.name.value,
  );
}

/** @throws GatewayError for the first limit that an operation exceeds; it reveals nothing of the schema */
export function refuseExcess(size: Size, { operation }: OperationDefinitionNode, config: Config): void {
  const rules: (readonly [counted: string, count: number, most: number])[] = [
    ['levels of fields (MAX_DEPTH)', size.depth, config.MAX_DEPTH],
    ['aliases (MAX_ALIASES)', size.aliases, config.MAX_ALIASES],
    ['directives', size.directives, maxDirectives],
    ['root fields', size.rootFields, maxRootFields],
  ];
  // A directive could leave out the only root field of a subscription: graphql-js would then fail.
  if (operation === 'subscription') rules.push(['directives at the root of a subscription', size.rootDirectives, 0]);
  if (operation === 'mutation') rules.push(['fields in a mutation', size.rootFields, maxMutationFields]);
  for (const [counted, count, most] of rules) {
    if (count <= most) continue;
    const message = `The document must have ${most === 0 ? 'no' : `at most ${most}`} ${counted}`;
    throw new GatewayError('GRAPHQL_VALIDATION_FAILED', message);
  }
}
