import { printSchemaWithDirectives } from '@graphql-tools/utils';
import { extendSchema, type GraphQLField, type GraphQLObjectType, type GraphQLSchema, parse } from 'graphql';
import type { RequestContext } from '../context/RequestContext.js';
import { badInput, GatewayError } from '../errors/errors.js';

/** A class with the resolvers of an entity, as methods. */
export interface Resolver {
  new (): object;
  /** Finds an entity by the key with which another subgraph refers to it; undefined where none can be found by its key. */
  readonly reference: ((key: KeyReader, context: RequestContext) => Entity | Promise<Entity>) | undefined;
}

/** By the name of the entity. */
export type Resolvers = Readonly<Record<string, Resolver>>;

/** graphql-js and plans read the type of an entity from this member. */
interface Entity {
  readonly __typename: string;
}

/** Reads a member of the key by which another subgraph refers to an entity. @throws GatewayError BAD_USER_INPUT unless it is a string */
export type KeyReader = (member: string) => string;

/** What a router queries. Composers know the definitions of the directives that `links` imports, so they are not repeated. */
const definitions = `
  scalar _Any
  type _Service { sdl: String }
  extend type Query {
    _entities(representations: [_Any!]!): [_Entity]!
    _service: _Service!
  }
`;

/**
 * Makes a schema a Federation 2 subgraph: adds `_service`, `_entities` and the definitions of the specification.
 * `links`: SDL that links the specifications whose directives the schema uses, and defines its other directives.
 */
export function asSubgraph(schema: GraphQLSchema, links: string, resolvers: Resolvers) {
  const union = `union _Entity = ${Object.keys(resolvers).sort().join(' | ')}`;
  const subgraph = extendSchema(schema, parse(links + definitions + union), { assumeValidSDL: true });
  let sdl: string | undefined; // printed when a router first asks, not at every start
  const query = subgraph.getQueryType() as GraphQLObjectType;
  const { _service, _entities } = query.getFields() as unknown as FederationFields;
  _service.resolve = (_source, _args, context) => {
    onlyRouter(context, '_service');
    sdl ??= printSchemaWithDirectives(subgraph);
    return { sdl };
  };
  _entities.resolve = (_source, { representations }, context) => {
    onlyRouter(context, '_entities');
    return representations.map((representation) => find(representation, context));
  };
  return subgraph;

  /** Finds an entity, synchronously when memory has it. Returns errors instead of throwing them: each fails only its entity. */
  function find(representation: unknown, context: RequestContext): unknown {
    try {
      const resolver = resolvers[textOf(representation, '__typename')];
      if (!resolver?.reference)
        throw badInput('representations.__typename', 'must name an entity that this subgraph can look up');
      return resolver.reference((member) => textOf(representation, member), context);
    } catch (error) {
      return error;
    }
  }
}

interface FederationFields {
  readonly _service: GraphQLField<unknown, RequestContext>;
  readonly _entities: GraphQLField<unknown, RequestContext, { readonly representations: readonly unknown[] }>;
}

/** A member of a representation, which arrives as the `_Any` scalar: nothing has checked it yet. */
function textOf(representation: unknown, member: string): string {
  const value = (representation as Readonly<Record<string, unknown>> | null)?.[member];
  if (typeof value === 'string') return value;
  throw badInput(`representations.${member}`, 'must be a string');
}

/** `_service` and `_entities` answer only the router when a secret is configured for it. */
function onlyRouter(context: RequestContext, field: string): void {
  if (context.facts.fromRouter !== false) return;
  context.audit('access-denied', 'denied', undefined, 'not the router');
  throw new GatewayError('FORBIDDEN', `Only the router may ask for ${field}`);
}
