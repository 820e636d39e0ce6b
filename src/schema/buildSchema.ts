import { buildSubgraphSchema } from '@apollo/subgraph';
import { printSchemaWithDirectives } from '@graphql-tools/utils';
import { type GraphQLFieldResolver, type GraphQLSchema, type GraphQLUnionType, isObjectType, parse } from 'graphql';
import { buildSchemaSync, createResolversMap, getMetadataStorage, type NonEmptyArray, type PubSub } from 'type-graphql';
import type { Scope } from '../auth/caller.js';
import type { RequestContext } from '../context.js';
import { badInput, GatewayError } from '../errors/errors.js';
import { defineProviders, type ProviderEntry } from './Provider.js';
import { type ValueKind, Vocabulary } from './Vocabulary.js';

/** The part of Federation 2 that the subgraph speaks; 2.5 is the first with scopes. */
const federationLink = `
  extend schema
    @link(url: "https://specs.apollo.dev/federation/v2.5", import: ["@key", "@tag", "@authenticated", "@requiresScopes"])
    @link(url: "https://specs.apollo.dev/nullability/v0.4", import: ["@semanticNonNull"])
    @federation__composeDirective(name: "@semanticNonNull")

  enum CacheControlScope { PUBLIC PRIVATE }
  directive @cacheControl(maxAge: Int, scope: CacheControlScope, inheritMaxAge: Boolean) on FIELD_DEFINITION | OBJECT | INTERFACE | UNION

  "The field is null only with an error whose path names it."
  directive @semanticNonNull(levels: [Int!]! = [0]) on FIELD_DEFINITION
`;

/** Holds the resolvers of one type. An entity's looks up a reference, and asks for the scope: `_entities` skips the root fields. */
type Resolver = object & { reference?(key: Key, context: RequestContext): unknown };
type ResolverClass = new (vocabulary: Vocabulary) => Resolver;

/** Reads a member of the key by which another subgraph refers to an entity. @throws GatewayError BAD_USER_INPUT unless it is a string */
export type Key = (member: string) => string;

export interface SchemaOptions {
  readonly resolvers: readonly ResolverClass[];
  readonly providers: readonly ProviderEntry[];
  readonly onUnknownValue?: (kind: ValueKind, value: string) => void;
}

/**
 * Builds the executable subgraph schema. TypeGraphQL's build settings are process-global and stick between calls, so every
 * one that matters is given here, and here only.
 */
export function buildSchema({ resolvers, providers, onUnknownValue = () => {} }: SchemaOptions): GraphQLSchema {
  defineProviders(providers);
  const vocabulary = new Vocabulary(providers, onUnknownValue);
  const instances: Instances = new Map(resolvers.map((someClass) => [someClass, new someClass(vocabulary)]));
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
    pubSub: {} as PubSub, // wanted wherever there is a subscription; ours bring their own iterators
    container: { get: (someClass) => instances.get(someClass) },
  });
  orderArguments(types);
  const direct = withDirectResolvers(createResolversMap(types) as ResolverMap, instances);
  const schema = buildSubgraphSchema({
    typeDefs: [parse(federationLink), parse(printSchemaWithDirectives(types))],
    resolvers: withReferences(direct, instances) as never, // its declared type wants other function types
  });
  guardFederation(schema);
  return schema;
}

type ResolverMap = Record<string, Record<string, unknown>>;
type Instances = ReadonlyMap<unknown, Resolver>;

/** Parameter decorators run from the last to the first, and TypeGraphQL keeps that order; people expect the one written. */
function orderArguments(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) (field.args as unknown[]).reverse();
  }
}

type Storage = ReturnType<typeof getMetadataStorage>;
type Handler = Storage['queries'][number] | Storage['fieldResolvers'][number];
type Param = NonNullable<Handler['params']>[number];
type Arguments = Readonly<Record<string, unknown>>;
type Method = (...params: unknown[]) => unknown;

/**
 * Replaces TypeGraphQL's wrappers around resolver methods by direct calls, made from the same metadata. Its wrappers await
 * every argument and role, which costs a field that is in memory a dozen promises. Subscriptions keep theirs.
 */
function withDirectResolvers(map: ResolverMap, instances: Instances): ResolverMap {
  const { objectTypes, queries, mutations, fieldResolvers } = getMetadataStorage();
  const direct = Object.fromEntries(Object.entries(map).map(([type, fields]) => [type, { ...fields }]));
  // First, because fields with a method of their own are in both lists.
  for (const { name: type, fields = [] } of objectTypes) {
    for (const { name, schemaName, roles } of fields) {
      if (name === schemaName && !roles) delete direct[type]?.[schemaName];
    }
  }
  for (const query of queries) replace('Query', query);
  for (const mutation of mutations) replace('Mutation', mutation);
  for (const field of fieldResolvers) {
    const target = field.getObjectType?.();
    replace(objectTypes.find((type) => type.target === target)?.name ?? '', field);
  }
  return direct;

  /** Metadata is kept per process: classes of other schemas are in it too. */
  function replace(type: string, handler: Handler): void {
    const fields = direct[type];
    if (fields === undefined || map[type]?.[handler.schemaName] === undefined) return;
    fields[handler.schemaName] = directCall(handler, instances.get(handler.target));
  }
}

function directCall({ params = [], roles, methodName }: Handler, instance: unknown) {
  const readers = params.toSorted((a, b) => a.index - b.index).map(readerOf);
  const scopes = (roles ?? []) as readonly Scope[];
  const method = (instance as Record<string, Method>)[methodName] as Method;
  return (root: unknown, args: Arguments, context: RequestContext) => {
    for (const scope of scopes) context.require(scope);
    const given = readers.map((read) => read(root, args, context));
    return method.apply(instance, given);
  };
}

function readerOf(param: Param): (root: unknown, args: Arguments, context: RequestContext) => unknown {
  if (param.kind === 'root') return (root) => root;
  if (param.kind === 'context') return (_root, _args, context) => context;
  if (param.kind !== 'arg') throw new Error(`A resolver method takes a parameter of the kind ${param.kind}`);
  return (_root, args) => args[param.name];
}

/** How each entity is found again from its key. */
function withReferences(map: ResolverMap, instances: Instances): ResolverMap {
  const { resolverClasses, objectTypes } = getMetadataStorage();
  const referred = { ...map };
  for (const { target, getObjectType } of resolverClasses) {
    const resolver = instances.get(target);
    if (!resolver?.reference) continue;
    const name = objectTypes.find((type) => type.target === getObjectType())?.name as string;
    // Async: what is thrown at once would fail every entity of the call, and not this one alone.
    const __resolveReference = async (representation: Arguments, context: RequestContext) =>
      resolver.reference?.((member) => text(representation, member), context);
    referred[name] = { ...map[name], __resolveReference };
  }
  return referred;
}

/** Representations arrive as the `_Any` scalar: nothing has checked them yet. */
function text(representation: Arguments, member: string): string {
  const value = representation[member];
  if (typeof value === 'string') return value;
  throw badInput(`representations.${member}`, 'must be a string');
}

/** `_service` and `_entities` answer only the router when a shared secret is configured. */
function guardFederation(schema: GraphQLSchema): void {
  const fields = schema.getQueryType()?.getFields() ?? {};
  const entities = new Set((schema.getType('_Entity') as GraphQLUnionType).getTypes().map(({ name }) => name));
  for (const name of ['_service', '_entities']) {
    const field = fields[name];
    const resolve = field?.resolve as GraphQLFieldResolver<unknown, RequestContext> | undefined;
    if (field === undefined || resolve === undefined) throw new Error(`The subgraph schema has no ${name}`);
    field.resolve = (source, args: { representations?: readonly unknown[] }, context: RequestContext, info) => {
      if (context.fromRouter === false) {
        context.audit('access-denied', 'denied', undefined, 'not the router');
        throw new GatewayError('FORBIDDEN', `${name} answers to the router only`);
      }
      for (const [index, reference] of (args.representations ?? []).entries()) {
        const typename = (reference as Arguments | null)?.['__typename'];
        if (typeof typename === 'string' && entities.has(typename)) continue;
        throw badInput(`representations.${index}.__typename`, 'must name an entity of this subgraph');
      }
      return resolve(source, args, context, info);
    };
  }
}
