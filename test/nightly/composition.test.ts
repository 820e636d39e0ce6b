import { print } from 'graphql';
import { composeSupergraph, subgraphs } from '../../examples/supergraph/composeSupergraph.js';
import { composeWithGrafbase } from './support/grafbase.js';

const urls = { taxpayersUrl: 'http://127.0.0.1:1/graphql', casesUrl: 'http://127.0.0.1:2/' };

const { composeServices } = await import('./support/apollo.js');
const { composeForCosmo } = await import('./support/composeForCosmo.js');

describe('the supergraph', () => {
  let composed: Record<string, string>;
  let cosmo: ReturnType<typeof composeForCosmo>;

  beforeAll(async () => {
    cosmo = composeForCosmo(subgraphs(urls));
    const { errors, supergraphSdl = '' } = composeServices(subgraphs(urls) as never);
    expect(errors).toBeUndefined();
    composed = {
      Apollo: supergraphSdl,
      'the Guild': composeSupergraph(urls),
      Cosmo: print(cosmo.federatedGraphAST),
      Grafbase: await composeWithGrafbase(urls),
    };
  });

  it.each(['Apollo', 'the Guild', 'Cosmo', 'Grafbase'])(
    'of %s has the fields of both, with scopes and tags',
    (name) => {
      const sdl = composed[name]?.replace(/\s+/g, ' ');
      for (const part of [
        'type Subscription',
        'cases: [Case!]!',
        '@requiresScopes(scopes: [["taxpayer-tokens:read"]])',
        'ssn: String @tag(name: "personal-data")',
      ]) {
        expect(sdl).toContain(part);
      }
      expect(sdl).not.toMatch(/_entities|_service/);
    },
  );

  it('of Cosmo prices what reaches the service', () => {
    const { costs } = cosmo.subgraphConfigBySubgraphName.get('taxpayers');
    expect(Object.fromEntries(costs.typeWeights)).toEqual({ RefreshJob: 20, TaxpayerToken: 10 });
    expect(costs.fieldWeights.get('Mutation.createClientLink').weight).toBe(10);
  });
});
