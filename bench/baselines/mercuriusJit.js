// Baseline: Mercurius on Fastify with compiled queries and a hand-written cache, the choice of teams that look for speed.

import Fastify from 'fastify';
import mercurius from 'mercurius';
import { CachedService } from './CachedService.js';
import { announce, readOptions } from './options.js';
import { resolvers, typeDefs } from './schema.js';
import { callerVerifier } from './verifyCaller.js';

const options = readOptions();
const verifyCaller = callerVerifier(options);
const api = new CachedService(options);

const app = Fastify();
await app.register(mercurius, {
  schema: typeDefs,
  resolvers,
  jit: 1,
  context: async (request) => ({ api, caller: await callerOrStatus(request.headers.authorization) }),
});
await app.listen({ port: options.port, host: '127.0.0.1' });
announce(app.server.address().port);
process.once('SIGTERM', () => process.exit(0));

/** Sets `statusCode` on the error, from which Fastify takes the HTTP status. */
function callerOrStatus(authorization) {
  return verifyCaller(authorization).catch((error) => {
    throw Object.assign(error, { statusCode: error.extensions.http.status });
  });
}
