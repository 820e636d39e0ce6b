import type { GraphQLFieldResolver } from 'graphql';
import { getMetadataStorage } from 'type-graphql';
import type { Scope } from '../auth/caller.js';
import type { RequestContext } from '../context.js';

type Storage = ReturnType<typeof getMetadataStorage>;
type Handler = Storage['queries'][number] | Storage['fieldResolvers'][number];
type Param = NonNullable<Handler['params']>[number];
type Resolve = GraphQLFieldResolver<unknown, RequestContext>;
type ReadParam = (root: unknown, args: Readonly<Record<string, unknown>>, context: RequestContext) => unknown;
type ResolverMap = Record<string, Record<string, unknown>>;

/**
 * Replaces the wrappers that TypeGraphQL puts around resolver methods by direct calls, made from the same metadata. Its
 * wrappers await every argument and every role even where there is nothing to wait for, which costs a field that is in
 * memory a dozen promises. What the direct calls leave out is what we do not use: validation (off), middlewares (none),
 * containers per request, and turning plain root and input objects into instances of their classes (no method is called
 * on one). Whatever else a method needs keeps TypeGraphQL's wrapper, and so do subscriptions.
 */
export function withDirectResolvers(map: ResolverMap, instanceOf: (type: Handler['target']) => object): ResolverMap {
  const storage = getMetadataStorage();
  const direct = Object.fromEntries(Object.entries(map).map(([type, fields]) => [type, { ...fields }]));
  // First, because fields with a method of their own are in both lists.
  for (const { name: type, fields } of storage.objectTypes) {
    for (const field of fields ?? []) {
      const isDefault = field.name === field.schemaName && !field.roles && !field.middlewares?.length;
      if (isDefault) delete direct[type]?.[field.schemaName];
    }
  }
  for (const query of storage.queries) replace('Query', query);
  for (const mutation of storage.mutations) replace('Mutation', mutation);
  for (const field of storage.fieldResolvers) {
    const target = field.getObjectType?.();
    const type = storage.objectTypes.find((candidate) => candidate.target === target);
    if (type) replace(type.name, field);
  }
  return direct;

  function replace(type: string, handler: Handler): void {
    const fields = direct[type];
    const wrapped = map[type]?.[handler.schemaName];
    if (fields === undefined || wrapped === undefined) return;
    fields[handler.schemaName] = directCall(handler, instanceOf(handler.target)) ?? wrapped;
  }
}

/** Undefined when the method needs something that only TypeGraphQL's wrapper gives. */
function directCall(handler: Handler, instance: object): Resolve | undefined {
  if (handler.middlewares?.length) return undefined;
  const params = [...(handler.params ?? [])].sort((a, b) => a.index - b.index);
  const readers = params.map((param) => readerOf(param));
  if (!readers.every((reader) => reader !== undefined)) return undefined;
  const scopes = (handler.roles ?? []) as readonly Scope[];
  const method = (instance as Record<string, (...params: unknown[]) => unknown>)[handler.methodName];
  if (method === undefined) return undefined;
  return (root, args, context) => {
    for (const scope of scopes) context.require(scope);
    return method.apply(
      instance,
      readers.map((read) => read(root, args, context)),
    );
  };
}

function readerOf(param: Param): ReadParam | undefined {
  switch (param.kind) {
    case 'context':
      return param.propertyName === undefined ? (_root, _args, context) => context : undefined;
    case 'root':
      return param.propertyName === undefined ? (root) => root : undefined;
    case 'arg': {
      const { name } = param;
      return param.validateFn ? undefined : (_root, args) => args[name];
    }
    default:
      return undefined;
  }
}
