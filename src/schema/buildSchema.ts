import { buildSubgraphSchema } from '@apollo/subgraph';
import { printSchemaWithDirectives } from '@graphql-tools/utils';
import { type GraphQLFieldResolver, type GraphQLSchema, type GraphQLUnionType, isObjectType, parse } from 'graphql';
import { buildSchemaSync, createResolversMap, type NonEmptyArray, type PubSub } from 'type-graphql';
import type { Scope } from '../auth/caller.js';
import type { RequestContext } from '../context.js';
import { badInput, GatewayError } from '../errors/errors.js';
import { withDirectResolvers } from './directResolvers.js';
import { defineProviders, type ProviderEntry } from './Provider.js';

/** The part of Federation 2 that the subgraph speaks; 2.5 is the first with scopes. */
const federationLink = `
  extend schema
    @link(url: "https://specs.apollo.dev/federation/v2.5", import: ["@key", "@tag", "@authenticated", "@requiresScopes"])

  enum CacheControlScope { PUBLIC PRIVATE }
  directive @cacheControl(maxAge: Int, scope: CacheControlScope, inheritMaxAge: Boolean) on FIELD_DEFINITION | OBJECT | INTERFACE | UNION
`;

export interface SchemaOptions {
  readonly resolvers: NonEmptyArray<new () => object>;
  readonly providers: readonly ProviderEntry[];
}

/**
 * Builds the executable subgraph schema. TypeGraphQL's build settings are process-global and stick between calls, so every
 * one that matters is given here, and here only.
 */
export function buildSchema({ resolvers, providers }: SchemaOptions): GraphQLSchema {
  defineProviders(providers);
  const container = instances();
  const types = buildSchemaSync({
    resolvers,
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
    pubSub: noTopics,
    container,
  });
  orderArguments(types);
  const schema = buildSubgraphSchema({
    typeDefs: [parse(federationLink), parse(printSchemaWithDirectives(types))],
    resolvers: withReferences(
      withDirectResolvers(createResolversMap(types) as ResolverMap, (someClass) => container.get(someClass)),
    ),
  });
  guardFederation(schema);
  return schema;
}

/** TypeGraphQL asks for one wherever there is a subscription; ours bring their own iterators and have no topics. */
const noTopics: PubSub = {
  publish: () => {},
  subscribe: () => {
    throw new Error('This schema has no topics');
  },
};

/** Parameter decorators run from the last to the first, and TypeGraphQL keeps that order; people expect the one written. */
function orderArguments(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) (field.args as unknown[]).reverse();
  }
}

type ResolverMap = Record<string, Record<string, unknown>>;
type Reference = Readonly<Record<string, unknown>>;

/** How each entity is found again from its key; through the same doors as the root fields, which `_entities` skips. */
function withReferences(
  map: ResolverMap,
): NonNullable<
  Parameters<typeof buildSubgraphSchema>[0] extends infer M ? (M extends { resolvers?: infer R } ? R : never) : never
> {
  const references: Record<string, (reference: Reference, context: RequestContext) => unknown> = {
    Taxpayer: ({ id }, context) => context.taxpayerReference(text(id, 'representations.id')),
    TaxpayerToken: ({ taxpayerId }, context) => {
      context.require('taxpayers:read');
      return context.taxpayerToken(text(taxpayerId, 'representations.taxpayerId'), undefined);
    },
    RefreshJob: ({ taxpayerId, jobId }, context) => {
      context.require('refresh-jobs:read');
      return context.refreshJob(text(taxpayerId, 'representations.taxpayerId'), text(jobId, 'representations.jobId'));
    },
    ClientLink: () => {
      throw badInput('representations.__typename', 'names an entity that cannot be looked up');
    },
  };
  const withReference = Object.entries(references).map(([type, resolve]) => [
    type,
    // Async: what is thrown at once would fail every entity of the call, and not this one alone.
    {
      ...map[type],
      __resolveReference: async (reference: Reference, context: RequestContext) => resolve(reference, context),
    },
  ]);
  return { ...map, ...Object.fromEntries(withReference) };
}

/** Keys of representations arrive as the `_Any` scalar: nothing has checked them yet. */
function text(value: unknown, path: string): string {
  if (typeof value === 'string') return value;
  throw badInput(path, 'must be a string');
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

/** One instance of each resolver class for the life of the schema: resolvers hold no state. */
function instances() {
  const made = new Map<unknown, object>();
  return {
    get(someClass: unknown): object {
      const instance = made.get(someClass) ?? new (someClass as new () => object)();
      made.set(someClass, instance);
      return instance;
    },
  };
}
