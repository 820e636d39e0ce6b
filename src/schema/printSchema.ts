import { execute, parse } from 'graphql';
import { resolvers } from '../resolvers/index.js';
import { buildSchema } from './buildSchema.js';
import { defaultProviders } from './Provider.js';

/** The subgraph's SDL as a router reads it from `_service`: what `src/schema/schema.graphql` has to hold. */
export function printSubgraphSchema(): string {
  const schema = buildSchema({ resolvers, providers: defaultProviders });
  const document = parse('{ _service { sdl } }');
  const result = execute({ schema, document, contextValue: { fromRouter: undefined } });
  if (result instanceof Promise || !result.data) throw new Error('The subgraph SDL could not be read');
  const service = result.data['_service'] as { readonly sdl: string };
  return `${service.sdl.trim()}\n`;
}
