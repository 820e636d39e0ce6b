import { startGateway } from '../../src/server.js';
import { startTrustedProvider } from './authenticated.js';
import { executions } from './executions.js';
import { configWith, environmentFor } from './gateway.js';
import { type GeneratedQuery, QueryGenerator, type Values } from './generatedQueries.js';
import { type Sandbox, startSandbox } from './sandbox.js';

/** What a gateway without plans answered, and what one with plans did, at the first or the second time. */
export interface Difference extends GeneratedQuery {
  readonly number: number;
  readonly time: number;
  readonly expected: string;
  readonly received: string;
}

export interface Comparison {
  /** How many queries were answered by a plan. */
  readonly byPlan: number;
  readonly difference: Difference | undefined;
}

/** Sends generated queries to two gateways, one of which makes plans, up to the first answer that differs by a byte. */
export async function comparePlans(queries: number, seed: number): Promise<Comparison> {
  const lines: string[] = [];
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const difference = await firstDifference(queries, seed, lines, stops);
    for (const stop of stops.splice(0).reverse()) await stop();
    return { difference, byPlan: executions(lines.join('\n'), 'plan') };
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function firstDifference(queries: number, seed: number, lines: string[], stops: (() => Promise<unknown>)[]) {
  const provider = await startTrustedProvider();
  stops.push(provider.stop);
  const sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'secret', jobDurationMs: 86_400_000 });
  stops.push(sandbox.stop);
  const { taxpayers, values } = valuesOf(sandbox);
  const claims = { scope: 'taxpayers:read refresh-jobs:read', taxpayer_ids: taxpayers };
  const authorization = `Bearer ${await provider.token(claims, { expiresIn: 86_400 })}`;
  const own = { CACHE_URL: 'memory:', RATE_LIMIT_PER_MINUTE: '0', LOG_OPERATIONS: 'all' };
  const config = configWith({}, { ...environmentFor(sandbox), ...provider.env, ...own });
  const start = async (plans: 'on' | 'off', write: (line: string) => void) => {
    const gateway = await startGateway(config, { plans, logDestination: { write } });
    stops.push(gateway.stop);
    return gateway.port;
  };
  const planned = await start('on', (line) => lines.push(line));
  const interpreted = await start('off', () => {});
  const generator = new QueryGenerator(seed, values);
  for (let number = 1; number <= queries; number += 1) {
    const query = generator.next();
    const expected = await answerOf(interpreted, query, authorization);
    for (const time of [1, 2]) {
      const received = await answerOf(planned, query, authorization);
      if (received !== expected) return { number, time, ...query, expected, received } satisfies Difference;
    }
  }
  return undefined;
}

/** Taxpayers whom the caller may see, and values that concern them, others, and nobody. */
function valuesOf({ control }: Sandbox): { readonly taxpayers: readonly string[]; readonly values: Values } {
  const plain = control.addTaxpayer({ name: 'Same Name', metadata: { a: [1, { b: null }] } }).id;
  const broken = control.addTaxpayer({ metadata: 'no object' as never }).id;
  const { jobId } = control.addJob({ taxpayerId: plain, name: 'same job' });
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

/** Status, headers but the date, and body, without the times of reading. */
async function answerOf(port: number, body: GeneratedQuery, authorization: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization, 'x-request-id': 'the-same' },
    body: JSON.stringify(body),
  });
  const headers = [...response.headers].filter(([name]) => name !== 'date');
  return `${response.status} ${JSON.stringify(headers)}\n${(await response.text()).replace(/"20\d\d-[^"]*Z"/g, '"…"')}`;
}
