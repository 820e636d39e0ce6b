// Composes the gateway and the cases into a supergraph, with an MIT-licensed composer. Run as a command it prints the supergraph,
// with the URLs of TAXPAYERS_URL and CASES_URL; with --without-scopes for routers that do not know those directives.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { composeServices } from '@theguild/federation-composition';
import { Kind, parse, visit } from 'graphql';
import { casesTypeDefs } from './casesSubgraph.js';

const gatewaySdl = new URL('../../src/schema/schema.graphql', import.meta.url);

/** The two subgraphs as any composer takes them. */
export function subgraphs({ taxpayersUrl, casesUrl }) {
  const taxpayers = { name: 'taxpayers', typeDefs: parse(readFileSync(gatewaySdl, 'utf8')), url: taxpayersUrl };
  return [taxpayers, { name: 'cases', typeDefs: casesTypeDefs, url: casesUrl }];
}

/**
 * The SDL of the supergraph. Throws when the subgraphs do not fit together.
 *
 * `scopes: false` leaves out @authenticated and @requiresScopes, with which `@apollo/gateway` and an Apollo Router without a
 * licence do not start. The gateway checks the scopes in any case.
 */
export function composeSupergraph(urls, { scopes = true } = {}) {
  const parts = subgraphs(urls);
  const { errors, supergraphSdl } = composeServices(scopes ? parts : parts.map(withoutScopes));
  if (errors) throw new Error(errors.map(({ message }) => message).join('\n'));
  return supergraphSdl;
}

const scopeDirectives = new Set(['authenticated', 'requiresScopes']);

function withoutScopes(subgraph) {
  const typeDefs = visit(subgraph.typeDefs, {
    Directive: ({ name }) => (scopeDirectives.has(name.value) ? null : undefined),
    DirectiveDefinition: ({ name }) => (scopeDirectives.has(name.value) ? null : undefined),
    // In @link's list of imports.
    [Kind.STRING]: ({ value }) => (scopeDirectives.has(value.slice(1)) && value.startsWith('@') ? null : undefined),
  });
  return { ...subgraph, typeDefs };
}

if (process.argv[1] === import.meta.filename) {
  const { TAXPAYERS_URL = 'http://127.0.0.1:4001/graphql', CASES_URL = 'http://127.0.0.1:4002/' } = process.env;
  const { values } = parseArgs({ options: { 'without-scopes': { type: 'boolean' } } });
  console.log(
    composeSupergraph({ taxpayersUrl: TAXPAYERS_URL, casesUrl: CASES_URL }, { scopes: !values['without-scopes'] }),
  );
}
