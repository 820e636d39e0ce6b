import { asJson, type Reply, type Request, times } from './Scan.js';

/** One check: what graphql-cop sends, and when it reports a finding. */
interface Check {
  readonly title: string;
  readonly request: Request;
  readonly finds: (reply: Reply) => boolean;
}

const named = { operationName: 'cop' };
const cop = (query: string) => asJson(query, named);
const typename = 'query cop { __typename }';
const answers = ({ json }: Reply) => json.data?.['__typename'] !== undefined;
const get = (query: string): Request => ({ method: 'GET', path: `/graphql?query=${encodeURIComponent(query)}` });
const typesIn = ({ json }: Reply) => Object(json.data?.['__schema']).types as unknown[] | undefined;

/** The checks of graphql-cop 1.15 (github.com/dolevf/graphql-cop), also those that it no longer runs by itself. */
export const copChecks: readonly Check[] = [
  {
    title: 'Alias Overloading',
    request: cop(`query cop { ${times(101, (i) => `alias${i}:__typename \n`)} }`),
    finds: ({ json }) => json.data?.['alias100'] !== undefined,
  },
  {
    title: 'Array-based Query Batching',
    request: {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(Array.from({ length: 10 }, () => ({ query: typename }))),
    },
    finds: ({ json }) => Array.isArray(json) && json.length >= 10,
  },
  {
    title: 'Introspection-based Circular Query',
    request: cop(`query cop { __schema { types ${'{ fields { type '.repeat(4)}{ name } ${'} } '.repeat(4)}} }`),
    finds: (reply) => (typesIn(reply)?.length ?? 0) > 25,
  },
  {
    title: 'Circular Fragment',
    request: asJson(
      'query { __schema { ...A } } fragment A on __Schema { __typename ...B } fragment B on __Schema { ...A }',
    ),
    finds: ({ json }) => json.errors === undefined,
  },
  {
    title: 'Directive Overloading',
    request: cop(`query cop { __typename ${'@aa'.repeat(10)} }`),
    finds: ({ json }) => json.errors?.length === 10,
  },
  { title: 'Field Duplication', request: cop(`query cop { ${'__typename \n'.repeat(500)}} `), finds: answers },
  {
    title: 'Field Suggestions',
    request: cop('query cop { __schema { directive } }'),
    finds: ({ json }) => json.errors?.[0]?.message.includes('Did you mean') === true,
  },
  { title: 'Mutation is allowed over GET', request: get('mutation cop {__typename}'), finds: answers },
  { title: 'GET Method Query Support', request: get('query cop {__typename}'), finds: answers },
  {
    title: 'POST based url-encoded query',
    request: {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `query=${encodeURIComponent(typename)}`,
    },
    finds: answers,
  },
  {
    title: 'GraphQL IDE',
    request: { method: 'GET', headers: { accept: 'text/html' } },
    finds: ({ text }) => ides.some((word) => text.includes(word)),
  },
  {
    title: 'Introspection',
    request: cop('query cop { __schema { types { name fields { name } } } }'),
    finds: (reply) => typesIn(reply) !== undefined,
  },
  { title: 'Trace Mode', request: cop(typename), finds: ({ text }) => text.includes('"tracing"') },
  {
    title: 'Unhandled Errors Detection',
    request: cop('qwerty cop { abc }'),
    finds: ({ text }) => /"(exception|stacktrace)"/.test(text),
  },
];

const ides = ['graphiql.min.css', 'GraphQL Playground', 'GraphiQL', 'graphql-playground'];
