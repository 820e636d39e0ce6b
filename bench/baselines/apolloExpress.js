// Baseline: Apollo Server on Express with RESTDataSource and DataLoader, combined as their documentation shows.

import { createServer } from 'node:http';
import { RESTDataSource } from '@apollo/datasource-rest';
import { ApolloServer } from '@apollo/server';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { expressMiddleware } from '@as-integrations/express5';
import DataLoader from 'dataloader';
import express from 'express';
import { parse } from 'graphql';
import { listen } from './listen.js';
import { federationDefs, resolvers, toRefreshJob, toTaxpayerToken, typeDefs } from './schema.js';
import { verifyCaller } from './verifyCaller.js';

const { UPSTREAM_BASE_URL, UPSTREAM_CLIENT_ID, UPSTREAM_CLIENT_SECRET } = process.env;
const credentials = Buffer.from(`${UPSTREAM_CLIENT_ID}:${UPSTREAM_CLIENT_SECRET}`).toString('base64');

/** One per request, as the documentation asks. `cache` shares the HTTP responses that the service allows to be cached. */
class TaxpayerApi extends RESTDataSource {
  baseURL = `${UPSTREAM_BASE_URL}/`;
  #tokens = new DataLoader((ids) => Promise.all(ids.map((id) => this.#fetchToken(id))));

  token(taxpayerId) {
    return this.#tokens.load(taxpayerId);
  }

  async job(taxpayerId, jobId) {
    const { accessToken } = await this.token(taxpayerId);
    const path = `tax-payer/${encodeURIComponent(taxpayerId)}/refresh/${encodeURIComponent(jobId)}`;
    return toRefreshJob(await this.get(path, { headers: this.#headers(accessToken) }));
  }

  async #fetchToken(taxpayerId) {
    const path = `auth/tax-payer/${encodeURIComponent(taxpayerId)}/token`;
    return toTaxpayerToken(await this.get(path, { headers: this.#headers(credentials) }));
  }

  #headers(bearer) {
    return { authorization: `Bearer ${bearer}`, 'service-api-version': '2024-01-01' };
  }
}

const app = express();
const server = new ApolloServer({
  schema: buildSubgraphSchema({ typeDefs: [parse(typeDefs), parse(federationDefs)], resolvers }),
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
listen(createServer(app));
