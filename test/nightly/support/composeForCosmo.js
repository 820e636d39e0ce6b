import { federateSubgraphs, LATEST_ROUTER_COMPATIBILITY_VERSION } from '@wundergraph/composition';

/**
 * Composes subgraphs as `wgc router compose` does. Throws when they do not fit together.
 *
 * @returns {any} what the package calls a federation result
 */
export function composeForCosmo(subgraphs) {
  const federated = federateSubgraphs({
    subgraphs: subgraphs.map(({ name, url, typeDefs }) => ({ name, url, definitions: typeDefs })),
    version: LATEST_ROUTER_COMPATIBILITY_VERSION,
  });
  if (!federated.success) throw new Error(federated.errors.map(({ message }) => message).join('\n'));
  return federated;
}
