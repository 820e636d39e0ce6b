import { composeSchemaContract } from '@theguild/federation-composition';
import { buildASTSchema, isInputObjectType, isObjectType, parse } from 'graphql';
import { composeSupergraph, subgraphs } from '../../examples/supergraph/composeSupergraph.js';
import { schema } from '../support/schema.js';

const urls = { taxpayersUrl: 'http://127.0.0.1:1/graphql', casesUrl: 'http://127.0.0.1:2/' };

it('a contract without personal data and secrets has the rest of the graph, and nothing about a person', () => {
  const tags = { include: new Set<string>(), exclude: new Set(['personal-data', 'sensitive']) };
  const composed = composeSchemaContract(subgraphs(urls), tags, false);
  expect(composed.errors).toBeUndefined();
  const contract = buildASTSchema(parse(composed.publicSdl ?? ''));
  const removed = Object.values(schema.getTypeMap()).flatMap((type) => {
    if (type.name.startsWith('_') || (!isObjectType(type) && !isInputObjectType(type))) return [];
    const left = contract.getType(type.name);
    const fields = isObjectType(left) || isInputObjectType(left) ? left.getFields() : {};
    return Object.keys(type.getFields()).flatMap((name) =>
      name.startsWith('_') || name in fields ? [] : [`${type.name}.${name}`],
    );
  });
  expect(removed.sort()).toEqual(
    [
      ...['street', 'other', 'city', 'state', 'zip'].map((name) => `AddressInput.${name}`),
      ...['name', 'taxId', 'type', 'phone', 'title'].map((name) => `BusinessInfoInput.${name}`),
      ...['firstName', 'lastName', 'ssn'].map((name) => `PersonalInfoInput.${name}`),
      ...['personalInfo', 'businessInfo', 'address'].map((name) => `PrefillDataInput.${name}`),
      ...['ClientLink.url', 'ClientLinkSettingsInput.prefillData', 'CreateClientLinkInput.metadata'],
      ...['accessToken', 'metadata', 'name'].map((name) => `TaxpayerToken.${name}`),
    ].sort(),
  );
});

it('the supergraph says that no two callers share an answer, so that a router which caches asks for each', () =>
  expect(composeSupergraph(urls)).toContain('type TaxpayerToken @cacheControl(maxAge: 0, scope: PRIVATE)'));
