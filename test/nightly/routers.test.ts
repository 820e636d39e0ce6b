import { composeSupergraph } from '../../examples/supergraph/composeSupergraph.js';
import { post, postQuery, type TrustedProvider } from '../support/gateway.js';
import { times } from '../support/times.js';
import { until } from '../support/until.js';
import { startApolloGateway } from './support/apollo.js';
import { startGrafbase } from './support/grafbase.js';
import { startHiveGateway } from './support/hiveGateway.js';
import {
  type Ask,
  crossing,
  expectCrossing,
  expectSubscription,
  routerSecret,
  type Subgraphs,
  startSubgraphs,
} from './support/supergraph.js';

type Router = { readonly origin: string };

let subgraphs: Subgraphs;
let provider: TrustedProvider;
let one: Subgraphs['one'];
let hive: Router;
let grafbase: Router;
let apollo: Awaited<ReturnType<typeof startApolloGateway>>;

beforeAll(async () => {
  subgraphs = await startSubgraphs();
  ({ provider, one } = subgraphs);
  const { addresses } = subgraphs;
  hive = await startHiveGateway(composeSupergraph(addresses), { FEDERATION_SHARED_SECRET: routerSecret });
  grafbase = await startGrafbase(addresses, routerSecret);
  apollo = await startApolloGateway(composeSupergraph(addresses, { scopes: false }), routerSecret);
}, 180_000);

const through =
  (router: () => Router): Ask =>
  (query, variables, authorization) =>
    postQuery(router().origin, query, variables, { authorization });
const throughHive = through(() => hive);
const throughGrafbase = through(() => grafbase);

describe.each<[string, Ask]>([
  ['Apollo Gateway', (query, variables, authorization) => apollo.ask(query, variables, authorization)],
  ['Hive Gateway', throughHive],
  ['Grafbase', throughGrafbase],
])('through %s, with the token of the caller', (_, ask) => {
  it('one query crosses both subgraphs', () => expectCrossing(subgraphs, ask));

  it("what is the caller's to see is decided by us, and the errors arrive", async () => {
    const { data, errors } = await ask(crossing, { jobId: one.jobId }, await provider.watcherOf(['somebody-else']));
    expect(JSON.stringify(data)).not.toContain('AUTHORIZED');
    expect(JSON.stringify(errors)).toContain('"FORBIDDEN"');
  });
});

it.each([
  ['Hive Gateway', () => hive],
  ['Grafbase', () => grafbase],
])('a subscription passes through %s to us, with fields of the other subgraph', (_, router) =>
  expectSubscription(subgraphs, router()),
);

it('a caller whom we refuse learns why through Hive Gateway, also for a subscription', async () => {
  const query = 'subscription { refreshJobUpdated(taxpayerId: "x", jobId: "y") { status } }';
  const headers = { accept: 'text/event-stream', authorization: 'Bearer nonsense' };
  const response = await post(`${hive.origin}/graphql`, { query }, headers);
  expect(await response.text()).toContain('"code":"UNAUTHENTICATED"');
});

it('Hive Gateway logs no variables of an operation for which it cannot reach the gateway', async () => {
  const addresses = { ...subgraphs.addresses, taxpayersUrl: 'http://127.0.0.1:9/graphql' };
  const lost = await startHiveGateway(composeSupergraph(addresses), {});
  const mutation = 'mutation ($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }';
  const input = { settings: { prefillData: { personalInfo: { ssn: '987-65-4329' } } } };
  const { errors } = await postQuery(lost.origin, mutation, { input }, { authorization: 'Bearer x' });
  expect(errors).toHaveLength(1);
  await until(() => lost.output().includes('createClientLink'));
  expect(lost.output()).not.toMatch(/987.?65.?4329/);
});

const tokenQuery = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status accessToken } }';

it('through Grafbase, errors of single fields arrive with their extensions, beside the rest of the answer', async () => {
  const authorization = await provider.watcherOf([one.taxpayerId]);
  const { data, errors } = await throughGrafbase(tokenQuery, { id: one.taxpayerId }, authorization);
  expect(data).toEqual({ taxpayerToken: { status: 'AUTHORIZED', accessToken: null } });
  const extensions = { code: 'FORBIDDEN', retryable: false, requestId: expect.any(String) };
  expect(errors).toMatchObject([{ path: ['taxpayerToken', 'accessToken'], extensions }]);
});

it('through Grafbase, an answer that is not 2xx loses its code', async () => {
  const { status, errors } = await throughGrafbase(tokenQuery, { id: one.taxpayerId }, 'Bearer nonsense');
  expect([status, errors]).toEqual([
    200,
    [expect.objectContaining({ extensions: { code: 'SUBGRAPH_REQUEST_ERROR' } })],
  ]);
});

it("Hive Gateway's demand sandbox prices what reaches the service", async () => {
  const authorization = await provider.watcherOf([one.taxpayerId]);
  const askFor = (count: number, field: string) =>
    throughHive(`{ ${times(count, (n) => `a${n}: ${field}`).join(' ')} }`, {}, authorization);
  const job = `refreshJob(taxpayerId: "${one.taxpayerId}", jobId: "${one.jobId}") { status }`;
  const token = `taxpayerToken(taxpayerId: "${one.taxpayerId}") { status }`;
  expect((await askFor(51, job)).errors?.[0]?.extensions).toMatchObject({ cost: { estimated: 51 * 20 } });
  expect((await askFor(51, token)).errors).toBeUndefined();
});

it('a value of an enum that the supergraph lacks makes the whole record null, through Apollo Gateway without an error', async () => {
  const sdl = composeSupergraph(subgraphs.addresses, { scopes: false }).replace('SERVICE_SANDBOX', 'UNPUBLISHED');
  const { ask } = await startApolloGateway(sdl, routerSecret);
  const query = `{ taxpayerToken(taxpayerId: "${one.taxpayerId}") { provider } }`;
  const authorization = await provider.watcherOf([one.taxpayerId]);
  const { data, errors } = await ask(query, {}, authorization);
  expect([data, errors]).toEqual([{ taxpayerToken: null }, undefined]);
});
