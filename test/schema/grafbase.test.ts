import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startCases } from '../../examples/supergraph/casesSubgraph.js';
import { startTrustedProvider, type TrustedProvider } from '../support/authenticated.js';
import { postQuery, startTestGateway, type TestGateway } from '../support/gateway.js';
import { startGrafbase } from '../support/grafbase.js';
import { quickPolls } from '../support/liveJob.js';
import { eventReader } from '../support/streamReader.js';

const secret = 'a-secret-of-the-router';

describe('through Grafbase, with the token of the caller', () => {
  let provider: TrustedProvider;
  let gateway: TestGateway;
  let cases: Awaited<ReturnType<typeof startCases>>;
  let router: Awaited<ReturnType<typeof startGrafbase>>;
  const one = { id: '1', title: 'First', taxpayerId: '', jobId: '' };
  const crossing = `query ($jobId: ID!) {
    case(id: "1") { taxpayer { token { status } refreshJob(jobId: $jobId) { status } } refreshJob { name } }
  }`;
  const token = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status accessToken } }';

  beforeAll(async () => {
    provider = await startTrustedProvider();
    const limits = { RATE_LIMIT_PER_MINUTE: '60', MAX_ALIASES: '8' };
    gateway = await startTestGateway({ ...provider.env, ...quickPolls, ...limits, FEDERATION_SHARED_SECRET: secret });
    const { id } = gateway.sandbox.control.addTaxpayer({ status: 'AUTHORIZED' });
    const { jobId } = gateway.sandbox.control.addJob({ taxpayerId: id, endsAs: null, name: 'A refresh' });
    Object.assign(one, { taxpayerId: id, jobId });
    cases = await startCases({ cases: [one] });
    const addresses = { taxpayersUrl: `${gateway.origin}/graphql`, casesUrl: cases.url };
    router = await startGrafbase(addresses, { FEDERATION_SHARED_SECRET: secret });
  }, 180_000);

  afterAll(async () => {
    await router?.stop();
    await cases.stop();
    await gateway.stop();
    await provider.stop();
  });

  const ask = (query: string, variables: object, authorization?: string) =>
    postQuery(router.origin, query, variables, authorization === undefined ? {} : { authorization });

  it('one query crosses both subgraphs, by entities', async () => {
    const { data, errors } = await ask(crossing, { jobId: one.jobId }, await provider.watcherOf([one.taxpayerId]));
    expect([data, errors]).toEqual([
      {
        case: {
          taxpayer: { token: { status: 'AUTHORIZED' }, refreshJob: { status: 'PROCESSING' } },
          refreshJob: { name: 'A refresh' },
        },
      },
      undefined,
    ]);
  });

  it("what is the caller's to see is decided by us, and the error arrives with its extensions", async () => {
    const { data, errors } = await ask(crossing, { jobId: one.jobId }, await provider.watcherOf(['somebody-else']));
    expect(data).toEqual({ case: { taxpayer: { token: null }, refreshJob: null } });
    expect(errors?.map(({ path, extensions }) => [path?.join('.'), extensions.code])).toEqual(
      expect.arrayContaining([
        ['case.taxpayer', 'FORBIDDEN'],
        ['case.refreshJob', 'FORBIDDEN'],
      ]),
    );
    expect(errors?.[0]?.extensions).toMatchObject({ retryable: false, requestId: expect.any(String) });
  });

  it('a field whose scope the caller lacks is null, and the rest answers', async () => {
    const { data, errors } = await ask(token, { id: one.taxpayerId }, await provider.watcherOf([one.taxpayerId]));
    expect(data).toEqual({ taxpayerToken: { status: 'AUTHORIZED', accessToken: null } });
    expect(errors).toMatchObject([{ path: ['taxpayerToken', 'accessToken'], extensions: { code: 'FORBIDDEN' } }]);
  });

  it('bad input is refused with what was expected', async () => {
    const { errors } = await ask(token, { id: ' ' }, await provider.watcherOf([one.taxpayerId]));
    expect(errors).toMatchObject([
      { extensions: { code: 'BAD_USER_INPUT', violations: [{ path: 'taxpayerId', message: 'must not be blank' }] } },
    ]);
  });

  it('a subscription arrives as events, with fields of the other subgraph', async () => {
    const query = `subscription ($taxpayerId: ID!, $jobId: ID!) {
      refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) { status taxpayer { cases { title } } }
    }`;
    const response = await fetch(`${router.origin}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        authorization: await provider.watcherOf([one.taxpayerId]),
      },
      body: JSON.stringify({ query, variables: { taxpayerId: one.taxpayerId, jobId: one.jobId } }),
    });
    const events = eventReader(response);
    const seen = (status: string) => ({
      event: 'next',
      data: { data: { refreshJobUpdated: { status, taxpayer: { cases: [{ title: 'First' }] } } } },
    });
    expect(await events.next()).toEqual(seen('PROCESSING'));
    gateway.sandbox.control.updateJob(one.taxpayerId, one.jobId, { status: 'completed' });
    expect(await events.next()).toEqual(seen('COMPLETED'));
    expect(await events.next()).toMatchObject({ event: 'complete' });
  });

  it('a document beyond a limit keeps its code, because the router leaves the choice of the status to us', async () => {
    const authorization = await provider.watcherOf([one.taxpayerId]);
    const aliases = Array.from({ length: 9 }, (_, n) => `a${n}: taxpayer(id: "y${n}") { id }`).join(' ');
    const { errors } = await ask(`{ ${aliases} }`, {}, authorization);
    expect(errors?.[0]?.extensions.code).toBe('GRAPHQL_VALIDATION_FAILED');
    const accept = 'application/graphql-response+json; charset=utf-8, application/json; charset=utf-8';
    const statusFor = async (headers: Record<string, string>) =>
      (await gateway.query(`{ ${aliases} }`, {}, { authorization, accept, ...headers })).status;
    expect(await statusFor({ 'x-gateway-router-secret': secret })).toBe(200);
    expect(await statusFor({})).toBe(422);
  });

  it('the router replaces the body of an answer that is not 2xx: a bad token and a caller over the limit lose their codes', async () => {
    const lost = (errors: unknown) =>
      expect(errors).toEqual([expect.objectContaining({ extensions: { code: 'SUBGRAPH_REQUEST_ERROR' } })]);
    const direct = await gateway.query(token, { id: one.taxpayerId }, { authorization: 'Bearer nonsense' });
    expect([direct.status, direct.errors?.[0]?.extensions.code]).toEqual([401, 'UNAUTHENTICATED']);
    const refused = await ask(token, { id: one.taxpayerId }, 'Bearer nonsense');
    expect(refused.status).toBe(200);
    lost(refused.errors);
    const authorization = await provider.watcherOf([one.taxpayerId]);
    // Different ones, because the router asks once for equal requests at a time.
    const several = Array.from({ length: 80 }, (_, n) => ask(`{ taxpayer(id: "x${n}") { id } }`, {}, authorization));
    const answers = await Promise.all(several);
    lost(answers.find(({ errors }) => errors?.[0]?.extensions.code === 'SUBGRAPH_REQUEST_ERROR')?.errors);
    expect((await gateway.query(token, { id: one.taxpayerId }, { authorization })).status).toBe(429);
  });
});
