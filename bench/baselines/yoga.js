// Baseline: GraphQL Yoga with its defaults, on node:http, with a hand-written cache.

import { createServer } from 'node:http';
import { createSchema, createYoga } from 'graphql-yoga';
import { CachedService } from './CachedService.js';
import { listen, readOptions } from './options.js';
import { resolvers, typeDefs } from './schema.js';
import { callerVerifier } from './verifyCaller.js';

const options = readOptions();
const verifyCaller = callerVerifier(options);
const api = new CachedService(options);

const yoga = createYoga({
  schema: createSchema({ typeDefs, resolvers }),
  context: async ({ request }) => ({
    api,
    caller: await verifyCaller(request.headers.get('authorization') ?? undefined),
  }),
});
listen(createServer(yoga), options.port);
