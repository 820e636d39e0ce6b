import { buildSubgraphSchema } from '@apollo/subgraph';
import { printSchemaWithDirectives } from '@graphql-tools/utils';
import { type GraphQLFieldResolver, type GraphQLSchema, type GraphQLUnionType, isObjectType, parse } from 'graphql';
import { buildSchemaSync, createResolversMap, getMetadataStorage, type NonEmptyArray, type PubSub } from 'type-graphql';
import type { Scope } from '../auth/caller.js';
import type { RequestContext } from '../context.js';
import { badInput, GatewayError } from '../errors/errors.js';
import { type ResolverMap, withDirectResolvers } from './directResolvers.js';
import { defineProviders, type ProviderEntry } from './Provider.js';
import { type UnknownValueListener, Vocabulary } from './Vocabulary.js';

/** The part of Federation 2 that the subgraph speaks; 2.5 is the first with scopes. */
const federationLink = `
  extend schema
    @link(url: "https://specs.apollo.dev/federation/v2.5", import: ["@key", "@tag", "@authenticated", "@requiresScopes"])

  enum CacheControlScope { PUBLIC PRIVATE }
  directive @cacheControl(maxAge: Int, scope: CacheControlScope, inheritMaxAge: Boolean) on FIELD_DEFINITION | OBJECT | INTERFACE | UNION
`;

/**
 * Holds the resolvers of one type. For an entity it also has a method `reference(key: Key, context: RequestContext)`, which
 * looks it up and has to ask for the scope, because `_entities` skips the root fields.
 */
export type ResolverClass = new (vocabulary: Vocabulary) => object;

/** Reads a member of the key by which another subgraph refers to an entity. @throws GatewayError BAD_USER_INPUT unless it is a string */
export type Key = (member: string) => string;

export interface SchemaOptions {
  readonly resolvers: readonly ResolverClass[];
  readonly providers: readonly ProviderEntry[];
  /** Called once for each value of the service that the schema has no name for. */
  readonly onUnknownValue?: UnknownValueListener;
}

/**
 * Builds the executable subgraph schema. TypeGraphQL's build settings are process-global and stick between calls, so every
 * one that matters is given here, and here only.
 */
export function buildSchema({ resolvers, providers, onUnknownValue = () => {} }: SchemaOptions): GraphQLSchema {
  defineProviders(providers);
  const vocabulary = new Vocabulary(providers, onUnknownValue);
  const instances = new Map(resolvers.map((someClass) => [someClass as unknown, new someClass(vocabulary)]));
  const instanceOf = (someClass: unknown) => instances.get(someClass) as object;
  const types = buildSchemaSync({
    resolvers: resolvers as unknown as NonEmptyArray<ResolverClass>,
    authMode: 'error',
    authChecker: ({ context }: { context: RequestContext }, scopes: Scope[]) => {
      for (const scope of scopes) context.require(scope);
      return true;
    },
    validate: false, // its errors carry the value sent; inputs are checked where they are used
    globalMiddlewares: [],
    scalarsMap: [],
    nullableByDefault: false,
    skipCheck: true, // the federation directives are only defined below
    pubSub: neverUsed,
    container: { get: instanceOf },
  });
  orderArguments(types);
  const direct = withDirectResolvers(createResolversMap(types) as ResolverMap, instanceOf);
  const schema = buildSubgraphSchema({
    typeDefs: [parse(federationLink), parse(printSchemaWithDirectives(types))],
    resolvers: withReferences(direct, instanceOf) as LegacyResolvers,
  });
  guardFederation(schema);
  return schema;
}

type LegacyResolvers = NonNullable<
  Extract<Parameters<typeof buildSubgraphSchema>[0], { typeDefs: unknown; kind?: never }>['resolvers']
>;

/** TypeGraphQL asks for one wherever there is a subscription; ours bring their own iterators. */
const neverUsed = {} as PubSub;

/** Parameter decorators run from the last to the first, and TypeGraphQL keeps that order; people expect the one written. */
function orderArguments(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) (field.args as unknown[]).reverse();
  }
}

interface CanRefer {
  reference?(key: Key, context: RequestContext): unknown;
}

/** How each entity is found again from its key. */
function withReferences(map: ResolverMap, instanceOf: (someClass: unknown) => CanRefer | undefined): ResolverMap {
  const { resolverClasses, objectTypes } = getMetadataStorage();
  const referred = { ...map };
  for (const { target, getObjectType } of resolverClasses) {
    const resolver = instanceOf(target);
    if (!resolver?.reference) continue;
    const name = objectTypes.find((type) => type.target === getObjectType())?.name as string;
    // Async: what is thrown at once would fail every entity of the call, and not this one alone.
    const __resolveReference = async (representation: Reference, context: RequestContext) =>
      resolver.reference?.((member) => text(representation, member), context);
    referred[name] = { ...map[name], __resolveReference };
  }
  return referred;
}

type Reference = Readonly<Record<string, unknown>>;

/** Representations arrive as the `_Any` scalar: nothing has checked them yet. */
function text(representation: Reference, member: string): string {
  const value = representation[member];
  if (typeof value === 'string') return value;
  throw badInput(`representations.${member}`, 'must be a string');
}

/** `_service` and `_entities` are for the router: with a shared secret configured, for nobody else. */
function guardFederation(schema: GraphQLSchema): void {
  const fields = schema.getQueryType()?.getFields() ?? {};
  const entities = new Set((schema.getType('_Entity') as GraphQLUnionType).getTypes().map(({ name }) => name));
  for (const name of ['_service', '_entities']) {
    const field = fields[name];
    const resolve = field?.resolve as GraphQLFieldResolver<unknown, RequestContext> | undefined;
    if (field === undefined || resolve === undefined) throw new Error(`The subgraph schema has no ${name}`);
    field.resolve = (source, args: { representations?: readonly unknown[] }, context: RequestContext, info) => {
      if (context.fromRouter === false) throw new GatewayError('FORBIDDEN', `${name} answers to the router only`);
      for (const [index, reference] of (args.representations ?? []).entries()) {
        const typename = (reference as Reference | null)?.['__typename'];
        if (typeof typename === 'string' && entities.has(typename)) continue;
        throw badInput(`representations.${index}.__typename`, 'must name an entity of this subgraph');
      }
      return resolve(source, args, context, info);
    };
  }
}
