import { composeServices } from '@theguild/federation-composition';
import { buildASTSchema, type GraphQLField, isNonNullType, isObjectType, parse } from 'graphql';
import { composeSupergraph, subgraphs } from '../../../examples/supergraph/composeSupergraph.js';
import type * as strict from '../../../packages/client/src/generated/strict.js';
import type { AccessTokenQuery, RefreshJobQuery, TaxpayerTokenQuery } from '../../../packages/client/src/index.js';
import { faults } from '../../support/faults.js';
import { type Answer, startTestGateway, startTrustedProvider } from '../../support/gateway.js';
import { read } from '../../support/repository.js';

const sdl = read('src/schema/schema.graphql');
const schema = buildASTSchema(parse(sdl), { assumeValidSDL: true });
const nullable = Object.values(schema.getTypeMap())
  .filter(isObjectType)
  .flatMap((type) => Object.values(type.getFields()).map((field) => ({ name: `${type.name}.${field.name}`, field })))
  .filter(({ name, field }) => !/^_|\._/.test(name) && !isNonNullType(field.type));
const isNullOnlyWithError = ({ astNode }: GraphQLField<unknown, unknown>) =>
  astNode?.directives?.some((directive) => directive.name.value === 'semanticNonNull') === true;

const document = `query ($id: ID!, $jobId: ID!) {
  taxpayer(id: $id) { token { accessToken name metadata createdAt } refreshJob(jobId: $jobId) { status } }
  taxpayerToken(taxpayerId: $id) { accessToken }
  refreshJob(taxpayerId: $id, jobId: $jobId) { status }
}`;
/** Where {@link document} reaches each field that is null only with an error. */
const places: Readonly<Record<string, readonly string[]>> = {
  'Query.taxpayer': ['taxpayer'],
  'Query.taxpayerToken': ['taxpayerToken'],
  'Query.refreshJob': ['refreshJob'],
  'Taxpayer.token': ['taxpayer.token'],
  'Taxpayer.refreshJob': ['taxpayer.refreshJob'],
  'TaxpayerToken.accessToken': ['taxpayer.token.accessToken', 'taxpayerToken.accessToken'],
};

/** The fields above that are null, and those of them that no error names. */
function nullsOf({ data, errors = [] }: Pick<Answer, 'data' | 'errors'>) {
  const named = new Set(errors.map(({ path }) => path?.join('.')));
  const isNull = (place: string) =>
    place.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | null)?.[key], data) === null;
  const nulls = Object.values(places).flat().filter(isNull);
  return { nulls, unexplained: nulls.filter((place) => !named.has(place)) };
}

describe('A field that may be null', () => {
  it.each(nullable.map(({ name, field }) => [name, field] as const))('says when: %s', (_, field) => {
    expect(field.description).toMatch(isNullOnlyWithError(field) ? /Null only with an error/ : /Null when/);
  });

  it('is marked where only an error makes it null', () => {
    const marked = nullable.filter(({ field }) => isNullOnlyWithError(field)).map(({ name }) => name);
    expect(marked.sort()).toEqual(Object.keys(places).sort());
  });

  it('is marked in the supergraph as well, whoever composes it', () => {
    const urls = { taxpayersUrl: 'http://taxpayers.example/graphql', casesUrl: 'http://cases.example/graphql' };
    for (const sdl of [composeServices(subgraphs(urls) as never).supergraphSdl, composeSupergraph(urls)]) {
      expect(sdl?.match(/^.*(?<!directive )@semanticNonNull\b(?!")/gm)).toHaveLength(Object.keys(places).length);
    }
  });
});

const provider = await startTrustedProvider();
const gateway = await startTestGateway({
  ...provider.env,
  UPSTREAM_TIMEOUT_MS: '1000',
  UPSTREAM_DEADLINE_MS: '2000',
  TOKEN_BUDGET_PER_HOUR: '0',
});

describe('A field marked @semanticNonNull', () => {
  const every = 'taxpayers:read taxpayer-tokens:read refresh-jobs:read';
  async function ask(scope = every, seen?: string) {
    const { id } = gateway.sandbox.addTaxpayer({ status: 'AUTHORIZED' });
    const { jobId } = gateway.sandbox.addJob({ taxpayerId: id });
    const authorization = await provider.watcherOf([seen ?? id], 300, scope);
    return nullsOf(await gateway.query(document, { id, jobId }, { authorization }));
  }

  it('has a value where nothing fails', async () => {
    expect(await ask()).toEqual({ nulls: [], unexplained: [] });
  });

  it.each([
    ['a scope of the token itself', 'taxpayers:read refresh-jobs:read', undefined],
    ['a scope of jobs', 'taxpayers:read taxpayer-tokens:read', undefined],
    ['every scope', 'none', undefined],
    ['the taxpayer', every, 'another'],
  ])('is null with an error for a caller without %s', async (_, scope, seen) => {
    const { nulls, unexplained } = await ask(scope, seen);
    expect([nulls.length > 0, unexplained]).toEqual([true, []]);
  });

  it.each(['unknownStatus', 'deepMetadata', 'noDate', 'notJson', 'otherTaxpayer'] as const)(
    'is null only with an error when the service does this: %s',
    async (name) => {
      gateway.sandbox.arm({ endpoint: 'any', fault: faults[name] });
      expect((await ask()).unexplained).toEqual([]);
      gateway.sandbox.disarmAll();
    },
  );
});

describe('The typed client', () => {
  it('has null wherever an error may make one, as the guides read it with errorPolicy all', () => {
    const status = (data?: TaxpayerTokenQuery): string | undefined => data?.taxpayerToken?.status;
    // @ts-expect-error With an error beside it the record is null.
    const unread = (data: TaxpayerTokenQuery): string => data.taxpayerToken.status;
    // @ts-expect-error So is the job.
    const job = (data: RefreshJobQuery): string => data.refreshJob.status;
    // @ts-expect-error The access token alone may be refused.
    const token = (data: AccessTokenQuery): string | undefined => data.taxpayerToken?.accessToken;
    expect(status({ taxpayerToken: null })).toBeUndefined();
    for (const read of [unread, job]) expect(() => read({ taxpayerToken: null, refreshJob: null })).toThrow(TypeError);
    expect(token({ taxpayerToken: null })).toBeUndefined();
  });

  it('has, for clients that throw for an error, no null where only an error makes one, and keeps the others', () => {
    const status = ({ taxpayerToken }: strict.TaxpayerTokenQuery): string => taxpayerToken.status;
    const token = ({ taxpayerToken }: strict.AccessTokenQuery): string => taxpayerToken.accessToken;
    // @ts-expect-error A taxpayer may have no name.
    const name = ({ taxpayerToken }: strict.TaxpayerTokenQuery): string => taxpayerToken.name;
    const record = { status: 'AUTHORIZED', name: null } as strict.TaxpayerTokenQuery['taxpayerToken'];
    expect([status({ taxpayerToken: record }), name({ taxpayerToken: record })]).toEqual(['AUTHORIZED', null]);
    expect(typeof token).toBe('function');
  });
});
