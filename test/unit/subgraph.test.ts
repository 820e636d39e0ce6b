import { buildSubgraphSchema } from '@apollo/subgraph';
import { describe, expect, it } from '@jest/globals';
import { composeSchemaContract } from '@theguild/federation-composition';
import {
  buildASTSchema,
  type ConstDirectiveNode,
  type DefinitionNode,
  type DocumentNode,
  type GraphQLSchema,
  graphqlSync,
  isInputObjectType,
  isObjectType,
  Kind,
  parse,
  print,
} from 'graphql';
import { subgraphs } from '../../examples/supergraph/composeSupergraph.js';
import { resolvers } from '../../src/resolvers/index.js';
import { buildSchema } from '../../src/schema/buildSchema.js';
import { defaultProviders } from '../../src/schema/Provider.js';

const schema = buildSchema({ resolvers, providers: defaultProviders });
const sdl = sdlOf(schema);
const urls = { taxpayersUrl: 'http://127.0.0.1:1/graphql', casesUrl: 'http://127.0.0.1:2/' };

describe('the subgraph', () => {
  it("publishes what Apollo's library publishes for the same types, but for the definitions that composers know", () => {
    const ours = withoutFederation(sdl);
    const theirs = sdlOf(buildSubgraphSchema({ typeDefs: ours }));
    const [own, full] = [linesOf(sdl), linesOf(theirs)];
    const isKnown = (text: string) =>
      /^("[^\n]*"\n)?(directive @|scalar |enum )(link|federation|composeDirective|key|tag|authenticated|requiresScopes|cost)/.test(
        text,
      );
    expect(own).toEqual(full.filter((text) => !isKnown(text)));
  });

  it('has no description that is too short for a parser in use: a line of six characters at least', () => {
    const short = [...sdl.matchAll(/"""([^"\n]*)"""/g)].filter(([, text = '']) => text.length < 6);
    expect(short).toEqual([]);
  });
});

describe('a contract without personal data and secrets', () => {
  it('has the rest of the graph, and nothing about a person', () => {
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
});

function sdlOf(subgraph: GraphQLSchema): string {
  const { data } = graphqlSync({ schema: subgraph, source: '{ _service { sdl } }', contextValue: {} });
  return (data as { _service: { sdl: string } })._service.sdl;
}

/** The directives that come by the links to Federation. */
const linked = /^(link|key|tag|authenticated|requiresScopes|cost|federation__.*)$/;

/** The SDL as somebody would write it: without what a library for subgraphs adds. */
function withoutFederation(text: string): DocumentNode {
  const definitions = parse(text).definitions.flatMap((definition): DefinitionNode[] => {
    if (definition.kind === Kind.SCHEMA_DEFINITION) {
      const directives = definition.directives?.filter((link) => !print(link).includes('specs.apollo.dev/link/'));
      return [{ kind: Kind.SCHEMA_EXTENSION, directives: directives ?? [] }];
    }
    if (definition.kind === Kind.DIRECTIVE_DEFINITION && linked.test(definition.name.value)) return [];
    if (!('name' in definition) || /^(federation_|link_)?_/.test(definition.name?.value ?? '')) return [];
    if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION) return [definition];
    return [{ ...definition, fields: definition.fields?.filter(({ name }) => !name.value.startsWith('_')) ?? [] }];
  });
  return { kind: Kind.DOCUMENT, definitions };
}

/** The definitions in an order that does not depend on who printed them. */
function linesOf(text: string): string[] {
  const { definitions } = parse(text);
  const links: ConstDirectiveNode[] = [];
  const others: DefinitionNode[] = [];
  for (const definition of definitions) {
    const isSchema = definition.kind === Kind.SCHEMA_DEFINITION || definition.kind === Kind.SCHEMA_EXTENSION;
    if (isSchema) links.push(...(definition.directives ?? []));
    else others.push(definition);
  }
  return [...links, ...others].map(print).sort();
}
