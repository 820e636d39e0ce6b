import { type DocumentNode, type GraphQLSchema, getDirectiveValues, TypeInfo, visit, visitWithTypeInfo } from 'graphql';

/** The scopes that `@requiresScopes` states for the fields of a valid document. */
export function neededScopes(schema: GraphQLSchema, document: DocumentNode): ReadonlySet<string> {
  const directive = schema.getDirective('requiresScopes');
  const types = new TypeInfo(schema);
  const needed = new Set<string>();
  const note = () => {
    const node = types.getFieldDef()?.astNode;
    const scopes = directive && node ? getDirectiveValues(directive, node)?.['scopes'] : undefined;
    for (const scope of (scopes as string[][] | undefined)?.flat() ?? []) needed.add(scope);
  };
  visit(document, visitWithTypeInfo(types, { Field: note }));
  return needed;
}
