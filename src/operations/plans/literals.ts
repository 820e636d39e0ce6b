/** A document with its string literals emptied, and the contents of the literals, in order. */
export interface Template {
  readonly text: string;
  readonly literals: readonly string[];
}

const maxLiterals = 500;
/** Printable ASCII without quotes and backslashes. */
const plainLiteral = /^[ !#-[\]-~]*$/;

/**
 * Takes the string literals out of a document, so that documents that differ only in the ids written into them share one
 * plan. Returns the document unchanged where looking for quotes is not enough to find the literals: comments, escapes,
 * block strings, and adjacent literals, which would look like a block string once they are empty.
 */
export function templateOf(query: string): Template {
  const whole = { text: query, literals: [] };
  let open = query.indexOf('"');
  if (open === -1 || query.includes('#') || query.includes('\\') || query.includes('"""')) return whole;
  const literals: string[] = [];
  let text = '';
  let rest = 0;
  while (open !== -1) {
    const close = query.indexOf('"', open + 1);
    if (close === -1 || literals.length === maxLiterals) return whole;
    const literal = query.slice(open + 1, close);
    if (!plainLiteral.test(literal) || query[close + 1] === '"') return whole;
    literals.push(literal);
    text += query.slice(rest, open + 1);
    rest = close;
    open = query.indexOf('"', close + 1);
  }
  return { text: text + query.slice(rest), literals };
}

/** Converts a position in a template to the position in its query. `starts`: where the literals begin in the template. */
export function positionInQuery(position: number, starts: readonly number[], literals: readonly string[]): number {
  return starts.reduce(
    (moved, start, place) => (start < position ? moved + (literals[place]?.length ?? 0) : moved),
    position,
  );
}
