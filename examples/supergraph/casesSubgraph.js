// A minimal second subgraph: cases that point to a taxpayer and to a refresh job.

import { readFileSync } from 'node:fs';
import { ApolloServer } from '@apollo/server';
import { ApolloServerPluginInlineTraceDisabled } from '@apollo/server/plugin/disabled';
import { startStandaloneServer } from '@apollo/server/standalone';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { parse } from 'graphql';

export const casesTypeDefs = parse(readFileSync(new URL('cases.graphql', import.meta.url), 'utf8'));

/** The authorized demo taxpayer of the gateway's sandbox, and a running job of this taxpayer. */
export const demoCase = {
  id: '1',
  title: 'A demo case (not real)',
  taxpayerId: '44444444-4444-4444-8444-444444444444',
  jobId: 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb',
};

/** Serves the cases; port 0 takes a free one. */
export async function startCases({ port = 0, cases = [demoCase] } = {}) {
  const byId = new Map(cases.map((each) => [each.id, each]));
  const resolvers = {
    Query: { case: (_, { id }) => byId.get(id) ?? null },
    Case: {
      __resolveReference: ({ id }) => byId.get(id) ?? null,
      // Only the keys: the gateway answers all other fields.
      taxpayer: ({ taxpayerId }) => ({ id: taxpayerId }),
      refreshJob: ({ taxpayerId, jobId }) => ({ taxpayerId, jobId }),
    },
    Taxpayer: { cases: ({ id }) => cases.filter(({ taxpayerId }) => taxpayerId === id) },
  };
  const schema = buildSubgraphSchema([{ typeDefs: casesTypeDefs, resolvers }]);
  const server = new ApolloServer({ schema, plugins: [ApolloServerPluginInlineTraceDisabled()] });
  const { url } = await startStandaloneServer(server, { listen: { port, host: '127.0.0.1' } });
  return { url, stop: () => server.stop() };
}
