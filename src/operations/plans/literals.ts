/** A document whose string literals are empty, and what was in them, in order. */
export interface Template {
  readonly text: string;
  readonly literals: readonly string[];
}

const maxLiterals = 500;
/** Printable ASCII: what is rare, or would be refused, is left to who parses in earnest. */
const plainLiteral = /^[ !#-[\]-~]*$/;

/**
 * Takes the string literals out of a document, so that documents with ids written into them look alike. The document as
 * it is where there are none, or where finding them would take more than looking for quotes (comments, escapes, blocks,
 * literals side by side, which would look like a block once they are empty).
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
