import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { startCases } from '../../../examples/supergraph/casesSubgraph.js';
import { atEnd } from '../../support/atEnd.js';
import { type Answer, post, quickPolls, startTestGateway, startTrustedProvider } from '../../support/gateway.js';
import { serve } from '../../support/serve.js';
import { eventReader } from '../../support/streamReader.js';

/** The secret that a router sends, so that the gateway answers its federation fields. */
export const routerSecret = 'a-secret-of-the-router';

/** A query for the one case, and through it for fields of the gateway. */
export const crossing = `query ($jobId: ID!) {
  case(id: "1") { taxpayer { token { status } refreshJob(jobId: $jobId) { status } } refreshJob { name } }
}`;

/** Sends an operation through a router. */
export type Ask = (query: string, variables: object, authorization: string) => Promise<Partial<Answer>>;

export type Subgraphs = Awaited<ReturnType<typeof startSubgraphs>>;

/** The subgraphs of a router, which are the gateway and the example's cases, and an identity provider. */
export async function startSubgraphs() {
  const provider = await startTrustedProvider();
  const secret = { FEDERATION_SHARED_SECRET: routerSecret };
  const gateway = await startTestGateway({ ...provider.env, ...quickPolls, ...secret });
  const { id: taxpayerId } = gateway.sandbox.addTaxpayer({ status: 'AUTHORIZED' });
  const { jobId } = gateway.sandbox.addJob({ taxpayerId, durationMs: Infinity, name: 'A refresh' });
  const one = { id: '1', title: 'First', taxpayerId, jobId };
  const cases = await startCases({ cases: [one] });
  atEnd(cases.stop);
  const casesTap = await startTap(cases.url);
  return {
    provider,
    gateway,
    /** The one case, of an authorized taxpayer whose job is running. */
    one,
    addresses: { taxpayersUrl: `${gateway.origin}/graphql`, casesUrl: casesTap.url },
    /** The headers of each request to the cases. */
    casesHeaders: casesTap.headers,
  };
}

/** A proxy that forwards requests to `target` and records their headers. */
async function startTap(target: string) {
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer((incoming, response) => {
    headers.push(incoming.headers);
    const { method } = incoming;
    const outgoing = request(target, { method, headers: incoming.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(outgoing);
  });
  return { url: `${await serve(server)}/`, headers };
}

/** Expects that both subgraphs answer {@link crossing}, and that the router does not send its secret to the cases. */
export async function expectCrossing({ provider, one, casesHeaders }: Subgraphs, ask: Ask): Promise<void> {
  casesHeaders.length = 0;
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
  expect(casesHeaders).not.toEqual([]);
  for (const headers of casesHeaders) {
    expect(headers).toHaveProperty('authorization');
    expect(headers).not.toHaveProperty('x-gateway-router-secret');
  }
}

/** Subscribes to a new job; expects the updates as events, with fields of the other subgraph. */
export async function expectSubscription({ provider, gateway, one }: Subgraphs, router: { origin: string }) {
  const { taxpayerId } = one;
  const { jobId } = gateway.sandbox.addJob({ taxpayerId, durationMs: Infinity });
  const query = `subscription ($taxpayerId: ID!, $jobId: ID!) {
    refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) { status taxpayer { cases { title } } }
  }`;
  const response = await post(
    `${router.origin}/graphql`,
    { query, variables: { taxpayerId, jobId } },
    { accept: 'text/event-stream', authorization: await provider.watcherOf([taxpayerId]) },
  );
  const events = eventReader(response);
  const seen = (status: string) => ({
    event: 'next',
    data: { data: { refreshJobUpdated: { status, taxpayer: { cases: [{ title: 'First' }] } } } },
  });
  expect(await events.next()).toEqual(seen('PROCESSING'));
  gateway.sandbox.updateJob(taxpayerId, jobId, { status: 'completed' });
  expect(await events.next()).toEqual(seen('COMPLETED'));
  expect(await events.next()).toMatchObject({ event: 'complete' });
}
