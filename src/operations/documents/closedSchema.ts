import { type ASTNode, type DocumentNode, GraphQLError, Kind, visit } from 'graphql';
import { HiddenMistake } from '../../errors/maskError.js';

/** A document exceeds one of our limits: saying so reveals nothing about the schema. */
export class LimitError extends GraphQLError {}

/**
 * The errors that callers see when the schema must stay hidden: the limits that are exceeded, or else that some selection
 * does not fit. To say what exactly does not fit, or where in the selection, would reveal which names exist.
 */
export function withoutSchema(errors: readonly GraphQLError[], document: DocumentNode): readonly GraphQLError[] {
  const limits = errors.filter((error) => error instanceof LimitError);
  const [mistake] = errors;
  return limits.length > 0 || mistake === undefined ? limits : [new HiddenMistake(mistake, placeOf(errors, document))];
}

/**
 * The first root selection with a mistake in it or in a fragment that it spreads, or else the first definition. The mistake's
 * own position would reveal names: it moves from a fragment or variable into a field once the type that is named exists.
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
