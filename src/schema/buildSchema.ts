import {
  GraphQLDirective,
  type GraphQLObjectType,
  type GraphQLSchema,
  isIntrospectionType,
  isObjectType,
  specifiedDirectives,
} from 'graphql';
import { buildSchemaSync, getMetadataStorage, type PubSub } from 'type-graphql';
import { asSubgraph, type Resolver, type Resolvers } from './asSubgraph.js';
import { defineProviders, readProviders } from './Provider.js';

/** The specifications that the subgraph uses. Federation 2.9, because not every composer supports a later version. */
const links = `
  extend schema
    @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", "@tag", "@authenticated", "@requiresScopes", "@cost", "@composeDirective"])
    @link(url: "https://specs.apollo.dev/nullability/v0.4", import: ["@semanticNonNull"])
    @composeDirective(name: "@semanticNonNull")
    @link(url: "https://the-guild.dev/mesh/v1.0", import: ["@cacheControl"])
    @composeDirective(name: "@cacheControl")

  "Who may share a cached answer."
  enum CacheControlScope { "All callers." PUBLIC "Only the caller who asked." PRIVATE }
  directive @cacheControl(maxAge: Int, scope: CacheControlScope, inheritMaxAge: Boolean) on FIELD_DEFINITION | OBJECT | INTERFACE | UNION

  "The field is null only with an error whose path names it."
  directive @semanticNonNull(levels: [Int!]! = [0]) on FIELD_DEFINITION
`;

/** TypeGraphQL has no decorator for the root types. */
const rootDescriptions = {
  Query: 'Reads taxpayers with their token records, and refresh jobs.',
  Mutation: 'Creates client links at the service.',
  Subscription: 'Sends the present state at once, then each change.',
};

/**
 * Builds the executable subgraph schema. TypeGraphQL's build settings are process-global and stick between calls, so every
 * one that matters is given here, and here only. Those for calling resolvers do not matter, because of {@link callDirectly}.
 * `resolvers`: by the name of their type.
 */
export function buildSchema(resolvers: Resolvers, providers = readProviders()): GraphQLSchema {
  defineProviders(providers);
  // Without the location that graphql-js has in advance of the specification: clients of the published one, such as Python's
  // graphql-core up to 3.2.8, cannot read a schema that names it.
  const directives = specifiedDirectives.map((directive) => {
    const locations = directive.locations.filter((location) => location !== 'DIRECTIVE_DEFINITION');
    return new GraphQLDirective({ ...directive.toConfig(), locations });
  });
  const types = buildSchemaSync({
    resolvers: Object.values(resolvers) as [Resolver, ...Resolver[]],
    scalarsMap: [],
    directives,
    nullableByDefault: false,
    skipCheck: true, // the federation directives are only defined below
    pubSub: {} as PubSub, // required for subscriptions but unused: ours bring their own iterators
  });
  callDirectly(types, resolvers);
  for (const [name, description] of Object.entries(rootDescriptions)) {
    Object.assign(types.getType(name) as GraphQLObjectType, { description });
  }
  return asSubgraph(types, links, resolvers);
}

type Storage = ReturnType<typeof getMetadataStorage>;
type Handler = Storage['queries'][number] | Storage['fieldResolvers'][number];

/**
 * Replaces TypeGraphQL's wrappers around resolver methods by the methods themselves, which have the parameters of graphql-js:
 * parent, arguments, context. The wrappers await every argument: a dozen promises for a field whose value is in memory. Also
 * restores the written order of arguments: decorators run from the last to the first.
 */
function callDirectly(schema: GraphQLSchema, resolvers: Resolvers): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || isIntrospectionType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      (field.args as unknown[]).reverse();
      delete field.resolve; // graphql-js then reads the member of this name, unless `use` sets a method
    }
  }
  const { queries, mutations, subscriptions, fieldResolvers } = getMetadataStorage();
  const types = new Map<unknown, string>(Object.entries(resolvers).map(([type, resolver]) => [resolver, type]));
  const use = ({ target, methodName, schemaName }: Handler, type = types.get(target)) => {
    const field = (schema.getType(type ?? '') as GraphQLObjectType).getFields()[schemaName];
    if (field) field.resolve = target.prototype[methodName];
  };
  for (const query of queries) use(query, 'Query');
  for (const mutation of mutations) use(mutation, 'Mutation');
  for (const subscription of subscriptions) use(subscription, 'Subscription');
  for (const field of fieldResolvers) use(field);
}
