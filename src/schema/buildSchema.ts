import {
  GraphQLDirective,
  type GraphQLObjectType,
  type GraphQLSchema,
  isIntrospectionType,
  isObjectType,
  specifiedDirectives,
} from 'graphql';
import { buildSchemaSync, getMetadataStorage, type PubSub } from 'type-graphql';
import type { RequestContext } from '../context/RequestContext.js';
import { asSubgraph, type Resolver } from './asSubgraph.js';
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

type ResolverClass = new () => Resolver;

/**
 * Builds the executable subgraph schema. TypeGraphQL's build settings are process-global and stick between calls, so every
 * one that matters is given here, and here only. Those for calling resolvers do not matter, because of {@link callDirectly}.
 * `resolvers`: by the name of their type.
 */
export function buildSchema(
  resolvers: Readonly<Record<string, ResolverClass>>,
  providers = readProviders(),
): GraphQLSchema {
  defineProviders(providers);
  const instances: Instances = new Map(
    Object.entries(resolvers).map(([type, someClass]) => [someClass, [type, new someClass()]]),
  );
  // Without the location that graphql-js has in advance of the specification: clients of the published one, such as Python's
  // graphql-core up to 3.2.8, cannot read a schema that names it.
  const directives = specifiedDirectives.map((directive) => {
    const locations = directive.locations.filter((location) => location !== 'DIRECTIVE_DEFINITION');
    return new GraphQLDirective({ ...directive.toConfig(), locations });
  });
  const types = buildSchemaSync({
    resolvers: Object.values(resolvers) as [ResolverClass, ...ResolverClass[]],
    scalarsMap: [],
    directives,
    nullableByDefault: false,
    skipCheck: true, // the federation directives are only defined below
    pubSub: {} as PubSub, // required for subscriptions but unused: ours bring their own iterators
  });
  callDirectly(types, instances);
  for (const [name, description] of Object.entries(rootDescriptions)) {
    Object.assign(types.getType(name) as GraphQLObjectType, { description });
  }
  return asSubgraph(types, links, new Map(instances.values()));
}

/** The resolvers of each type, by their class. */
type Instances = ReadonlyMap<unknown, readonly [type: string, resolver: Resolver]>;

type Storage = ReturnType<typeof getMetadataStorage>;
type Handler = Storage['queries'][number] | Storage['fieldResolvers'][number];
type Param = NonNullable<Handler['params']>[number];
type Arguments = Readonly<Record<string, unknown>>;
type Method = (...params: unknown[]) => unknown;

/**
 * Replaces TypeGraphQL's wrappers around resolver methods by direct calls, made from the same metadata. The wrappers await every
 * argument: a dozen promises for a field whose value is in memory. Also restores the written order of arguments: decorators run
 * from the last to the first.
 */
function callDirectly(schema: GraphQLSchema, instances: Instances): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || isIntrospectionType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      (field.args as unknown[]).reverse();
      delete field.resolve; // graphql-js then reads the member of this name, unless `use` sets a method
    }
  }
  const { queries, mutations, subscriptions, fieldResolvers } = getMetadataStorage();
  const use = (handler: Handler, root?: string) => {
    const [type = '', resolver] = instances.get(handler.target) ?? [];
    const field = (schema.getType(root ?? type) as GraphQLObjectType).getFields()[handler.schemaName];
    if (field) field.resolve = directCall(handler, resolver);
  };
  for (const query of queries) use(query, 'Query');
  for (const mutation of mutations) use(mutation, 'Mutation');
  for (const subscription of subscriptions) use(subscription, 'Subscription');
  for (const field of fieldResolvers) use(field);
}

function directCall({ params = [], methodName }: Handler, instance: unknown) {
  const readers = params.toSorted((a, b) => a.index - b.index).map(readerOf);
  const method = (instance as Record<string, Method>)[methodName] as Method;
  return (root: unknown, args: Arguments, context: RequestContext) =>
    method.apply(
      instance,
      readers.map((read) => read(root, args, context)),
    );
}

function readerOf(param: Param): (root: unknown, args: Arguments, context: RequestContext) => unknown {
  if (param.kind === 'root') return (root) => root;
  if (param.kind === 'context') return (_root, _args, context) => context;
  if (param.kind !== 'arg') throw new Error(`A resolver method takes a parameter of the kind ${param.kind}`);
  return (_root, args) => args[param.name];
}
