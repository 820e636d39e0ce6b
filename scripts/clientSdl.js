// The schema for the tools of clients, such as Relay's compiler, which is part of the typed client's package.

import { parse, print, visit } from 'graphql';

const directives = new Set(['deprecated', 'oneOf', 'semanticNonNull', 'specifiedBy']);

/** The SDL of the subgraph without what is said to routers alone. */
export function clientSdl(subgraphSdl) {
  const isForRouters = ({ name }) =>
    /^(_\w+|link__\w+|federation__\w+|CacheControlScope)$/.test(name.value) ? null : undefined;
  const isForClients = ({ name }) => (directives.has(name.value) ? undefined : null);
  return `${print(
    visit(parse(subgraphSdl), {
      Directive: isForClients,
      DirectiveDefinition: isForClients,
      SchemaExtension: () => null,
      FieldDefinition: isForRouters,
      EnumTypeDefinition: isForRouters,
      ScalarTypeDefinition: isForRouters,
      ObjectTypeDefinition: isForRouters,
      UnionTypeDefinition: isForRouters,
    }),
  )}\n`;
}
