// Composes the gateway and the cases into a supergraph, with an MIT-licensed composer.

import { readFileSync } from 'node:fs';
import { composeServices } from '@theguild/federation-composition';
import { parse } from 'graphql';
import { casesTypeDefs } from './casesSubgraph.js';

const gatewaySdl = new URL('../../src/schema/schema.graphql', import.meta.url);

/** The two subgraphs as any composer takes them. */
export function subgraphs({ taxpayersUrl, casesUrl }) {
  const taxpayers = { name: 'taxpayers', typeDefs: parse(readFileSync(gatewaySdl, 'utf8')), url: taxpayersUrl };
  return [taxpayers, { name: 'cases', typeDefs: casesTypeDefs, url: casesUrl }];
}

/** The SDL of the supergraph. Throws when the subgraphs do not fit together. */
export function composeSupergraph(urls) {
  const { errors, supergraphSdl } = composeServices(subgraphs(urls));
  if (errors) throw new Error(errors.map(({ message }) => message).join('\n'));
  return supergraphSdl;
}
