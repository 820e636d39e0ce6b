// Baseline: Mercurius on Fastify with compiled queries and a hand-written cache, the choice of teams that look for speed.

import Fastify from 'fastify';
import mercurius from 'mercurius';
import { CachedService } from './CachedService.js';
import { listen } from './listen.js';
import { resolvers, typeDefs } from './schema.js';
import { verifyCaller } from './verifyCaller.js';

const api = new CachedService();

const app = Fastify();
await app.register(mercurius, {
  schema: typeDefs,
  resolvers,
  jit: 1,
  context: async (request) => ({ api, caller: await verifyCaller(request.headers.authorization) }),
});
await app.ready();
listen(app.server);
