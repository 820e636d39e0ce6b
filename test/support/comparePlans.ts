import { executions } from './executions.js';
import {
  type Bounds,
  type Environment,
  environmentFor,
  newText,
  post,
  startTestGateway,
  startTrustedProvider,
} from './gateway.js';
import { QueryGenerator, type Values } from './generatedQueries.js';
import type { Sandbox } from './sandbox.js';

interface Sent {
  readonly query: string;
  readonly variables?: object | undefined;
  readonly operationName?: string | undefined;
}

/** Two gateways over one sandbox, of which one never gets the same text twice, so that it makes no plans. */
export async function startBoth(env: Environment = {}, bounds: Bounds = {}) {
  const provider = await startTrustedProvider();
  const common = { ...provider.env, RATE_LIMIT_PER_MINUTE: '0', LOG_OPERATIONS: 'all', ...env };
  const planned = await startTestGateway(common, { jobDurationMs: 86_400_000 }, bounds);
  const { sandbox, output } = planned;
  const interpreted = await startTestGateway({ ...environmentFor(sandbox), ...common }, {}, bounds);

  /** Status, headers but those that tell the time, and body, without times of reading, new links and the order of errors. */
  async function answerOf(origin: string, body: Sent, authorization: string) {
    const response = await post(`${origin}/graphql`, body, {
      authorization,
      'x-request-id': 'the-same',
    });
    const headers = [...response.headers].filter(([name]) => name !== 'date');
    const text = (await response.text())
      .replace(/"20\d\d-[^"]*Z"/g, '"…"')
      .replace(/"clientLink":\{[^}]*\}/g, '"clientLink":"…"');
    return `${response.status} ${JSON.stringify(headers)}\n${withErrorsInOrder(text)}`;
  }

  return {
    sandbox,
    /** The Authorization header of a caller with these claims. */
    authorizationOf: async (claims: object) => `Bearer ${await provider.token({ ...claims }, { expiresIn: 86_400 })}`,
    byPlan: (sent: Sent, authorization: string) => answerOf(planned.origin, sent, authorization),
    byApollo: (sent: Sent, authorization: string) =>
      answerOf(interpreted.origin, { ...sent, query: newText(sent.query) }, authorization),
    /** How many operations the gateway with plans has executed so. */
    executed: (way: string) => executions(output(), way),
    output,
  };
}

/** Errors of several calls are in the order in which the calls failed. */
function withErrorsInOrder(text: string) {
  const { errors, ...rest } = JSON.parse(text) as { errors?: readonly object[] };
  if (errors === undefined || errors.length < 2) return text;
  return JSON.stringify({ errors: errors.map((error) => JSON.stringify(error)).sort(), ...rest });
}

/** Sends generated queries to both, up to the first answer that differs by a byte; tells how many a plan answered. */
export async function comparePlans(queries: number, seed: number) {
  const both = await startBoth();
  const { taxpayers, values } = valuesOf(both.sandbox);
  const claims = { scope: 'taxpayers:read refresh-jobs:read', taxpayer_ids: taxpayers };
  const authorization = await both.authorizationOf(claims);
  const generator = new QueryGenerator(seed, values);
  /** What a gateway without plans answered, and what one with plans did, at the first or the second time. */
  let difference: object | undefined;
  for (let number = 1; number <= queries && !difference; number += 1) {
    const query = generator.next();
    const expected = await both.byApollo(query, authorization);
    for (const time of [1, 2]) {
      const received = await both.byPlan(query, authorization);
      if (received !== expected) difference ??= { number, time, ...query, expected, received };
    }
  }
  return { difference, byPlan: both.executed('plan') };
}

/** Taxpayers whom the caller may see, and values that concern them, others, and nobody. */
function valuesOf(sandbox: Sandbox): { readonly taxpayers: readonly string[]; readonly values: Values } {
  const plain = sandbox.addTaxpayer({ name: 'Same Name', metadata: { a: [1, { b: null }] } }).id;
  const broken = sandbox.addTaxpayer({ metadata: 'no object' as never }).id;
  const { jobId } = sandbox.addJob({ taxpayerId: plain, name: 'same job' });
  const taxpayers = [plain, broken, 'missing'];
  const ids = { fitting: [plain, plain, plain, ...taxpayers, 'foreign'], odd: ['..', '', 12, null] };
  const jobIds = [jobId, jobId, jobId, 'missing'];
  const one = { __typename: 'Taxpayer', id: plain };
  const ofTaxpayers = taxpayers.map((taxpayerId) => ({ __typename: 'TaxpayerToken', taxpayerId }));
  const ofJobs = jobIds.map((id) => ({ __typename: 'RefreshJob', taxpayerId: plain, jobId: id }));
  const values = {
    taxpayerId: ids,
    id: ids,
    jobId: { fitting: jobIds, odd: ['', 12, null] },
    maxAgeSeconds: { fitting: [60, 3600, null], odd: [59, -1, 1.5, 'x'] },
    waitSeconds: { fitting: [0, null], odd: [-1, 'x'] },
    // None with a mistake: it makes the whole answer null at once, and which errors come before it is a matter of time.
    representations: { fitting: [[one], ofTaxpayers, ofJobs, []], odd: [null] },
  };
  return { taxpayers, values };
}
