import { buildSchema, type GraphQLSchema, getIntrospectionQuery, getNamedType, isObjectType } from 'graphql';
import { asJson, type Request } from './Scan.js';

// What InQL (github.com/doyensec/inql) sends beyond the brute force that it shares with Clairvoyance.

/** The introspection queries of three versions of the specification. */
export const introspections: readonly Request[] = [
  asJson(getIntrospectionQuery()),
  asJson(getIntrospectionQuery({ specifiedByUrl: true })),
  asJson(getIntrospectionQuery({ specifiedByUrl: true, inputValueDeprecation: true })),
];

export const consolePaths = [
  ...['/', '/graphql.php', '/graphql', '/graphiql', '/graphql/console/', '/swapi-graphql/', '/gql'],
  ...['/graphql/subscriptions', '/graphql/subscription', '/playground', '/console'],
];

export const consoleWords = ['GraphiQL', 'GraphQL Playground', 'GraphQL Console', 'graphql-playground', '"__schema":{'];

/** Of its fingerprints of engines those that graphql-js, its servers and their kin could match: the document and the words. */
export const fingerprints: readonly (readonly [engine: string, query: string, words: RegExp])[] = [
  ['graphql_yoga', 'subscription { __typename }', /asyncIterator\] is not a function|Unexpected error\./],
  ['apollo', 'query @skip { __typename }', /Directive .*@skip.* argument .*if.* is required/],
  ['apollo', 'query @deprecated { __typename }', /Directive .*@deprecated.* may not be used on QUERY/],
  ['aws-appsync', 'query @skip { __typename }', /MisplacedDirective/],
  ['graphene', 'aaa', /Syntax Error GraphQL \(1:1\)/],
  ['hasura', 'query @cached { __typename }', /query_root/],
  ['hasura', 'query { aaa }', /not found in type/],
  ['hasura', 'query { __schema }', /missing selection set/],
  ['graphql-php', 'query ! { __typename }', /Cannot parse the unexpected character/],
  ['ruby-graphql', 'query { __typename { }', /Parse error on|is missing required arguments/],
  ['graphql-java', 'queryy { __typename }', /offending token|DuplicateDirectiveName/],
  ['ariadne', 'query { __typename @abc }', /Unknown directive/],
  ['wpgraphql', 'query { alias1$1:__typename }', /Expected Name, found|DEBUG_LOGS/],
  ['gqlgen', 'query { alias^_:__typename { }', /Expected Name, found|expected at least one definition/],
  ['graphql-go', '', /Must provide an operation|Unexpected empty IN/],
  ['sangria', 'queryy { __typename }', /syntaxError|expected ExecutableDefinition/],
  ['dianajl', 'queryy { __typename }', /Unexpected Name/],
  ['strawberry', 'query @deprecated { __typename }', /may not be used on query/],
  ['tartiflette', 'query { graphwoof }', /Field graphwoof doesn't exist/],
  ['directus', '', /INVALID_PAYLOAD/],
  ['lighthouse', 'query { __typename @include(if: falsee) }', /Internal server error|INTERNAL_SERVER_ERROR/i],
  ['mercurius', '', /Unknown query|MER_ERR_GQL_VALIDATION/],
  ['morpheus-graphql', 'queryy { __typename }', /expecting white space|offset/],
  ['caliban', 'query { inql }', /Cannot query field|on type/],
];

/** The cycles among the object types of a schema, as its scanner finds them: names of fields that lead back to a type. */
export function cyclesIn(sdl: string, root = 'Query'): readonly (readonly string[])[] {
  const schema: GraphQLSchema = buildSchema(sdl, { assumeValid: true });
  const cycles: string[][] = [];
  const walk = (name: string, path: readonly { readonly type: string; readonly field: string }[]) => {
    const begin = path.findIndex(({ type }) => type === name);
    if (begin >= 0) {
      cycles.push(path.slice(begin).map(({ field }) => field));
      return;
    }
    const type = schema.getType(name);
    if (!isObjectType(type)) return;
    for (const field of Object.values(type.getFields())) {
      walk(getNamedType(field.type).name, [...path, { type: name, field: field.name }]);
    }
  };
  walk(root, []);
  return [...new Map(cycles.map((cycle) => [cycle.join(), cycle])).values()];
}
