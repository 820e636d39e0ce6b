import {
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  type InputValueDefinitionNode,
  Kind,
  OverlappingFieldsCanBeMergedRule,
  type SourceLocation,
  TypeInfo,
  type TypeNode,
  type VariableDefinitionNode,
  validate,
  visit,
  visitWithTypeInfo,
} from 'graphql';

/** A document whose string literals are empty, and what was in them, in order. */
export interface Template {
  readonly text: string;
  readonly literals: readonly string[];
}

/** What stands for the literals in a compiled template. */
const variablePrefix = '__literal';
const maxLiterals = 500;
/** Printable ASCII: what is rare, or would be refused, is left to who parses in earnest. */
const plainLiteral = /^[ !#-[\]-~]*$/;

/**
 * Takes the string literals out of a document, so that documents with ids written into them look alike. Undefined when
 * there are none, or when finding them would take more than looking for quotes (comments, escapes, block strings).
 */
export function templateOf(query: string): Template | undefined {
  let open = query.indexOf('"');
  if (open === -1 || query.includes('#') || query.includes('\\') || query.includes('"""')) return undefined;
  if (query.includes(variablePrefix)) return undefined;
  const literals: string[] = [];
  let text = '';
  let rest = 0;
  while (open !== -1) {
    const close = query.indexOf('"', open + 1);
    if (close === -1 || literals.length === maxLiterals) return undefined;
    const literal = query.slice(open + 1, close);
    if (!plainLiteral.test(literal)) return undefined;
    literals.push(literal);
    text += query.slice(rest, open + 1);
    rest = close;
    open = query.indexOf('"', close + 1);
  }
  return { text: text + query.slice(rest), literals };
}

/**
 * The document of a template with a variable in place of each literal, to be compiled once for all texts that look like
 * it. Undefined when a literal is more than the value of an argument that takes any string, or when the document is valid
 * only because two of its literals are equal.
 */
export function withVariables(schema: GraphQLSchema, document: DocumentNode): DocumentNode | undefined {
  const types = new TypeInfo(schema);
  const definitions: VariableDefinitionNode[] = [];
  let replaced = true;
  const replacing = visit(
    document,
    visitWithTypeInfo(types, {
      StringValue(_node, _key, parent) {
        const type = types.getInputType();
        const name = type && getNamedType(type).name;
        const isArgument = (parent as InputValueDefinitionNode | undefined)?.kind === (Kind.ARGUMENT as string);
        if (!isArgument || types.getDirective() || (name !== 'ID' && name !== 'String')) {
          replaced = false;
          return undefined;
        }
        const variable = { kind: Kind.VARIABLE, name: nameNode(`${variablePrefix}${definitions.length}`) } as const;
        const given: TypeNode = {
          kind: Kind.NON_NULL_TYPE,
          type: { kind: Kind.NAMED_TYPE, name: nameNode(name) },
        };
        definitions.push({ kind: Kind.VARIABLE_DEFINITION, variable, type: given });
        return variable;
      },
    }),
  );
  if (!replaced || validate(schema, replacing, [OverlappingFieldsCanBeMergedRule]).length > 0) return undefined;
  return visit(replacing, {
    OperationDefinition: (operation) => ({
      ...operation,
      variableDefinitions: [...(operation.variableDefinitions ?? []), ...definitions],
    }),
  });
}

/** The variables of a request to a compiled template. */
export function variablesWith(
  variables: Readonly<Record<string, unknown>>,
  literals: readonly string[],
): Record<string, unknown> {
  const all: Record<string, unknown> = { ...variables };
  for (let place = 0; place < literals.length; place += 1) all[`${variablePrefix}${place}`] = literals[place];
  return all;
}

/** Where a place in a template is in the text it was made of. Literals hold no line break, so that only columns differ. */
export function locationIn({ text, literals }: Template, { line, column }: SourceLocation): SourceLocation {
  let shift = 0;
  let place = 0;
  for (const [index, ofTemplate] of text.split(/\r\n|\n|\r/).entries()) {
    for (let at = ofTemplate.indexOf('""'); at !== -1; at = ofTemplate.indexOf('""', at + 2)) {
      if (index === line - 1 && at < column - 1) shift += literals[place]?.length ?? 0;
      place += 1;
    }
    if (index === line - 1) break;
  }
  return { line, column: column + shift };
}

function nameNode(value: string) {
  return { kind: Kind.NAME, value } as const;
}
