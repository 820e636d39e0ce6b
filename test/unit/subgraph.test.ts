import { composeSchemaContract } from '@theguild/federation-composition';
import { buildASTSchema, type GraphQLSchema, parse } from 'graphql';
import { composeSupergraph, subgraphs } from '../../examples/supergraph/composeSupergraph.js';
import { gatewayConfig } from '../../examples/supergraph/gateway.config.js';
import { read } from '../support/repository.js';
import { schema } from '../support/schema.js';

const urls = { taxpayersUrl: 'http://127.0.0.1:1/graphql', casesUrl: 'http://127.0.0.1:2/' };

/** The fields of a schema, but for those of introspection and federation. */
function fieldsOf(some: GraphQLSchema): string[] {
  const fields = Object.values(some.getTypeMap()).flatMap((type) =>
    'getFields' in type ? Object.keys(type.getFields()).map((name) => `${type.name}.${name}`) : [],
  );
  return fields.filter((field) => !/\b_/.test(field));
}

it('a contract without personal data and secrets has the rest of the graph, and nothing about a person', () => {
  const tags = { include: new Set<string>(), exclude: new Set(['personal-data', 'sensitive']) };
  const composed = composeSchemaContract(subgraphs(urls), tags, false);
  expect(composed.errors).toBeUndefined();
  const left = fieldsOf(buildASTSchema(parse(composed.publicSdl ?? '')));
  const removed = fieldsOf(schema).filter((field) => !left.includes(field));
  expect(removed.sort()).toEqual([
    'AddressInput.city',
    'AddressInput.other',
    'AddressInput.state',
    'AddressInput.street',
    'AddressInput.zip',
    'BusinessInfoInput.name',
    'BusinessInfoInput.phone',
    'BusinessInfoInput.taxId',
    'BusinessInfoInput.title',
    'BusinessInfoInput.type',
    'ClientLink.url',
    'ClientLinkSettingsInput.prefillData',
    'CreateClientLinkInput.metadata',
    'PersonalInfoInput.firstName',
    'PersonalInfoInput.lastName',
    'PersonalInfoInput.ssn',
    'PrefillDataInput.address',
    'PrefillDataInput.businessInfo',
    'PrefillDataInput.personalInfo',
    'TaxpayerToken.accessToken',
    'TaxpayerToken.metadata',
    'TaxpayerToken.name',
  ]);
});

it('the supergraph says that no two callers share an answer, so that a router which caches asks for each', () =>
  expect(composeSupergraph(urls)).toContain('type TaxpayerToken @cacheControl(maxAge: 0, scope: PRIVATE)'));

it.each(['router.yaml', 'router.graphos.yaml', 'cosmo/config.yaml', 'grafbase/grafbase.toml'])(
  "%s passes on the caller's token and a secret, and lets a query with `waitSeconds` take its time",
  (name) => {
    const parts = [/named?\W+authorization/i, /name\W+x-gateway-router-secret/, /timeout\W+310s/];
    for (const part of parts) expect(read(`examples/supergraph/${name}`)).toMatch(part);
  },
);

it('Hive Gateway passes on the token of a WebSocket also in upper case', () => {
  const context = { connectionParams: { Authorization: 'Bearer x' } };
  const asked = { request: new Request('http://x'), subgraphName: 'cases', context };
  expect(gatewayConfig.propagateHeaders.fromClientToSubgraphs(asked)).toEqual({ authorization: 'Bearer x' });
});
