import type { GraphQLFieldResolver } from 'graphql';
import { getMetadataStorage } from 'type-graphql';
import type { Scope } from '../auth/caller.js';
import type { RequestContext } from '../context.js';

type Storage = ReturnType<typeof getMetadataStorage>;
type Handler = Storage['queries'][number] | Storage['fieldResolvers'][number];
type Param = NonNullable<Handler['params']>[number];
type ReadParam = (root: unknown, args: Readonly<Record<string, unknown>>, context: RequestContext) => unknown;
type Methods = Readonly<Record<string, (...params: unknown[]) => unknown>>;

/** What graphql-tools takes: the resolver of each field, by type. */
export type ResolverMap = Record<string, Record<string, unknown>>;

/**
 * Replaces the wrappers that TypeGraphQL puts around resolver methods by direct calls, made from the same metadata. Its
 * wrappers await every argument and every role even where there is nothing to wait for, which costs a field that is in
 * memory a dozen promises. Subscriptions keep theirs.
 *
 * @throws Error for a method that needs more than its root, its arguments and the context
 */
export function withDirectResolvers(map: ResolverMap, instanceOf: (type: Handler['target']) => object): ResolverMap {
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
    fields[handler.schemaName] = directCall(handler, instanceOf(handler.target) as Methods);
  }
}

function directCall(handler: Handler, instance: Methods): GraphQLFieldResolver<unknown, RequestContext> {
  const params = [...(handler.params ?? [])].sort((a, b) => a.index - b.index);
  const readers = params.map(readerOf);
  const scopes = (handler.roles ?? []) as readonly Scope[];
  const method = instance[handler.methodName] as Methods[string];
  return (root, args, context) => {
    for (const scope of scopes) context.require(scope);
    return method.apply(
      instance,
      readers.map((read) => read(root, args, context)),
    );
  };
}

function readerOf(param: Param): ReadParam {
  if (param.kind === 'root') return (root) => root;
  if (param.kind === 'context') return (_root, _args, context) => context;
  if (param.kind !== 'arg') throw new Error(`A resolver method takes a parameter of the kind ${param.kind}`);
  return (_root, args) => args[param.name];
}
