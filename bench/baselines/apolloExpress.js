// Baseline: Apollo Server on Express with RESTDataSource and DataLoader, combined as their documentation shows.

import { createServer } from 'node:http';
import { RESTDataSource } from '@apollo/datasource-rest';
import { ApolloServer } from '@apollo/server';
import { ApolloServerPluginDrainHttpServer } from '@apollo/server/plugin/drainHttpServer';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { expressMiddleware } from '@as-integrations/express5';
import DataLoader from 'dataloader';
import express from 'express';
import { parse } from 'graphql';
import { listen, options } from './listening.js';
import { federationDefs, resolvers, toRefreshJob, toTaxpayerToken, typeDefs } from './schema.js';
import { callerVerifier } from './verifyCaller.js';

const verifyCaller = callerVerifier(options);

/** One per request, as the documentation asks. `cache` shares the HTTP responses that the service allows to be cached. */
class TaxpayerApi extends RESTDataSource {
  baseURL = `${options.upstream}/`;
  #credentials = Buffer.from(`${options.clientId}:${options.clientSecret}`).toString('base64');
  #tokens = new DataLoader((ids) => Promise.all(ids.map((id) => this.#fetchToken(id))));

  token(taxpayerId) {
    return this.#tokens.load(taxpayerId);
  }

  async job(taxpayerId, jobId) {
    const token = await this.token(taxpayerId);
    if (!token) return null;
    const path = `tax-payer/${encodeURIComponent(taxpayerId)}/refresh/${encodeURIComponent(jobId)}`;
    return orNull(this.get(path, { headers: this.#headers(token.accessToken) }).then(toRefreshJob));
  }

  #fetchToken(taxpayerId) {
    const path = `auth/tax-payer/${encodeURIComponent(taxpayerId)}/token`;
    return orNull(this.get(path, { headers: this.#headers(this.#credentials) }).then(toTaxpayerToken));
  }

  #headers(bearer) {
    return { authorization: `Bearer ${bearer}`, 'service-api-version': '2024-01-01' };
  }
}

const app = express();
const httpServer = createServer(app);
const server = new ApolloServer({
  schema: buildSubgraphSchema({ typeDefs: [parse(typeDefs), parse(federationDefs)], resolvers }),
  plugins: [ApolloServerPluginDrainHttpServer({ httpServer })],
});
await server.start();
app.use(
  '/graphql',
  express.json(),
  expressMiddleware(server, {
    context: async ({ req }) => ({
      caller: await verifyCaller(req.headers.authorization),
      api: new TaxpayerApi({ cache: server.cache }),
    }),
  }),
);
listen(httpServer);

async function orNull(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error.extensions?.response?.status === 404) return null;
    throw error;
  }
}
