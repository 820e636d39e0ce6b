import {
  type DefinitionNode,
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
  /** Those of root fields, and of the fragments that these stand in. */
  rootDirectives: 0,
  rootFields: 0,
  fields: 0,
};
const sums = ['aliases', 'directives', 'rootDirectives', 'rootFields', 'fields'] as const;

/** What is counted of an operation, or of a part of it. A fragment counts as often as it is spread. */
type Size = Readonly<typeof emptySize>;

/** Returns a function that sizes parts of a document. Each fragment is walked only once, however often it is spread. */
export function sizeIn(document: DocumentNode): (node: ExecutableDefinitionNode | SelectionNode) => Size {
  const known = new Map<string, Size>();
  const sizeOf = (node: ExecutableDefinitionNode | SelectionNode): Size => {
    const directives = node.directives?.length ?? 0;
    const size = { ...emptySize, directives, rootDirectives: directives };
    const parts =
      node.kind === Kind.FRAGMENT_SPREAD
        ? [sizeOfFragment(node.name.value)]
        : node.selectionSet?.selections.map((one) => sizeOf(one));
    for (const part of parts ?? []) {
      size.depth = Math.max(size.depth, part.depth);
      for (const counted of sums) size[counted] += part[counted];
    }
    if (node.kind !== Kind.FIELD) return size;
    if (node.alias) size.aliases += 1;
    const depth = node.name.value.startsWith('__') ? 0 : 1 + size.depth;
    return { ...size, depth, rootDirectives: directives, rootFields: 1, fields: 1 + size.fields };
  };
  const sizeOfFragment = (name: string): Size => {
    const size = known.get(name);
    if (size !== undefined) return size;
    known.set(name, emptySize); // a fragment that spreads itself adds nothing; validation refuses it
    const fragment = fragmentIn(document, name);
    const found = fragment ? sizeOf(fragment) : emptySize;
    known.set(name, found);
    return found;
  };
  return sizeOf;
}

/** The root fields of an operation, each as often as it is spread. Only for one whose {@link Size} is within the limits. */
export function rootFieldsOf(document: DocumentNode, { selectionSet }: OperationDefinitionNode): readonly FieldNode[] {
  const fieldsOf = (one: SelectionNode): readonly FieldNode[] => {
    if (one.kind === Kind.FIELD) return [one];
    const from = one.kind === Kind.INLINE_FRAGMENT ? one : fragmentIn(document, one.name.value);
    return from?.selectionSet.selections.flatMap(fieldsOf) ?? [];
  };
  return selectionSet.selections.flatMap(fieldsOf);
}

function fragmentIn({ definitions }: DocumentNode, name: string): FragmentDefinitionNode | undefined {
  const isIt = (one: DefinitionNode) => one.kind === Kind.FRAGMENT_DEFINITION && one.name.value === name;
  return definitions.find(isIt) as FragmentDefinitionNode | undefined;
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
