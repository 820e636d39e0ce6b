import { type ASTNode, type DocumentNode, GraphQLError, Kind, visit } from 'graphql';
import { HiddenMistake } from '../../errors/maskError.js';

/** A mistake that a limit of ours finds: the same for every schema. */
export class LimitError extends GraphQLError {}

/**
 * What may be said where the schema is not to be found out: the limits that are exceeded; or else that a selection does not
 * fit. What exactly, and where in it, would tell which names exist.
 */
export function withoutSchema(errors: readonly GraphQLError[], document: DocumentNode): readonly GraphQLError[] {
  const limits = errors.filter((error) => error instanceof LimitError);
  const [mistake] = errors;
  return limits.length > 0 || mistake === undefined ? limits : [new HiddenMistake(mistake, placeOf(errors, document))];
}

/**
 * The first selection at a root with a mistake in it or in a fragment that it spreads, or else the document. The place of the
 * mistake itself would move from a fragment or a variable into a field once the name of its type exists.
 */
function placeOf(errors: readonly GraphQLError[], { definitions }: DocumentNode): ASTNode | undefined {
  const positions = errors.flatMap(({ positions: [first] = [] }) => first ?? []);
  const holdsMistake = ({ loc }: ASTNode) =>
    loc !== undefined && positions.some((position) => loc.start <= position && position < loc.end);
  const fragments = definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
  const wrong = new Set(fragments.filter(holdsMistake).map(({ name }) => name.value));
  const spreads = new Map(fragments.map((fragment) => [fragment.name.value, spreadsIn(fragment)]));
  const isWrong = (selection: ASTNode) => {
    const reached = new Set(spreadsIn(selection)); // grows while it is walked
    for (const name of reached) for (const next of spreads.get(name) ?? []) reached.add(next);
    return holdsMistake(selection) || [...reached].some((name) => wrong.has(name));
  };
  const roots = definitions.flatMap((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION ? definition.selectionSet.selections : [],
  );
  return roots.find(isWrong) ?? definitions[0];
}

function spreadsIn(node: ASTNode): readonly string[] {
  const names: string[] = [];
  visit(node, {
    FragmentSpread({ name }) {
      names.push(name.value);
    },
  });
  return names;
}
