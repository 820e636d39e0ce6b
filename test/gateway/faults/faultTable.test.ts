import { jest } from '@jest/globals';
import { type ErrorCode, errorCodes } from '../../../src/errors/errors.js';
import { type Endpoint, endpoints, maxTries } from '../../../src/upstream/ResilientFetch.js';
import { type Fault, upstreamOnlyText } from '../../support/fault.js';
import { faults } from '../../support/faults.js';
import { type AnswerError, metric, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { read } from '../../support/repository.js';

interface Expectation {
  readonly code: string;
  /** Requests that leave for the endpoint at fault. */
  readonly calls: number | 'all tries';
  readonly retryAfterSeconds?: number;
  /** The same request again makes no further call. */
  readonly silent?: true;
}
interface TableOperation {
  readonly document: string;
  /** An answer takes at most this many times the `setting`. */
  readonly times: number;
  readonly setting: 'UPSTREAM_TIMEOUT_MS' | 'UPSTREAM_DEADLINE_MS';
  /** It calls the service with the taxpayer's token. */
  readonly readsToken?: true;
}
interface FaultClass {
  readonly faults: readonly { readonly when: string; readonly fault: Fault | keyof typeof faults | 'outage' }[];
  readonly expect: Readonly<Record<string, Expectation>>;
  /** What a second try with the same idempotencyKey gets, once the service is well again. */
  readonly sameKeyAgain: string;
  readonly slow?: true;
}
/** docs/faults.md is printed from this table; each of its lines is tried here on a running gateway. */
const table = JSON.parse(read('test/gateway/faults/faultTable.json')) as {
  readonly operations: Readonly<Record<string, TableOperation>>;
  readonly classes: readonly FaultClass[];
};
type TableFault = FaultClass['faults'][number]['fault'];
type Operation = TableOperation & { readonly endpoint: Endpoint };
const operations = Object.entries(table.operations).map(([endpoint, operation]) => ({
  endpoint,
  ...operation,
})) as Operation[];

/** Longer than every silence and cool-down. */
const longEnoughMs = 61_000;
/** What a busy machine may add to a time limit. */
const machineSlackMs = 5000;

let skewMs = 0;
const realNow = Date.now;
const realMonotonicNow = performance.now.bind(performance);
beforeAll(() => {
  jest.spyOn(Date, 'now').mockImplementation(() => realNow() + skewMs);
  // The breakers' clock: they count the failures of ten seconds.
  jest.spyOn(performance, 'now').mockImplementation(() => realMonotonicNow() + skewMs);
});
afterAll(() => {
  jest.restoreAllMocks();
});

/** Short limits for the faults that are waited out, long ones for the others: a busy machine is no fault. */
const limits = {
  slow: { UPSTREAM_TIMEOUT_MS: '400', UPSTREAM_DEADLINE_MS: '4000' },
  quick: { UPSTREAM_TIMEOUT_MS: '5000', UPSTREAM_DEADLINE_MS: '10000' },
} as const;
const common = { BREAKER_RESET_MS: '1000', RATE_LIMIT_PER_MINUTE: '0' };
const gateways = {
  slow: await startTestGateway({ ...limits.slow, ...common }),
  quick: await startTestGateway({ ...limits.quick, ...common }),
};

const cases = table.classes.flatMap((row) => row.faults.map(({ when, fault }) => ({ ...row, when, fault })));

it.each(cases)('When the service $when, every operation ends as the table says', async (row) => {
  const pace = row.slow ? 'slow' : 'quick';
  const gateway = gateways[pace];
  const logged = gateway.logs.length;
  for (const operation of operations) {
    const { endpoint, times, setting } = operation;
    const expected = row.expect[endpoint];
    if (expected === undefined) throw new Error(`The table says nothing of ${endpoint}`);
    const calls = expected.calls === 'all tries' ? maxTries : expected.calls;
    const scene = await stage(gateway, operation);
    await scene.begin(row.fault);

    const startedAt = performance.now();
    expect([endpoint, await scene.run()]).toEqual([endpoint, outcomeOf(expected)]);
    expect(performance.now() - startedAt).toBeLessThan(times * Number(limits[pace][setting]) + machineSlackMs);
    expect(await scene.tries()).toBe(calls);

    if (expected.silent) {
      expect((await scene.run()).code).toBe(expected.code);
      expect(await scene.tries()).toBe(calls);
    }
    if (endpoint === 'createClientLink') {
      skewMs += longEnoughMs;
      const key = row.when;
      expect(await scene.run(key)).toEqual(outcomeOf(expected));
      await scene.end(row.fault);
      expect((await scene.run(key)).code).toBe(row.sameKeyAgain);
    }
    await scene.end(row.fault);
    skewMs += longEnoughMs;
    expect((await scene.run()).code).toMatch(/^(answered|created)$/);
    skewMs += longEnoughMs;
  }
  const logs = gateway.logs.slice(logged).join('');
  expect(logs).not.toContain(upstreamOnlyText);
  expect(logs).not.toContain('a bug of the gateway');
});

it('The table has every endpoint, and a line for every answer that breaks the contract', () => {
  expect(Object.keys(table.operations).sort()).toEqual([...endpoints].sort());
  const named = cases.map(({ fault }) => fault).filter((fault) => typeof fault === 'string' && fault !== 'outage');
  expect(named.sort()).toEqual(Object.keys(faults).sort());
});

interface Outcome {
  readonly code: string;
  readonly retryable?: boolean;
  readonly retryAfterSeconds?: number;
}

/** What an {@link Outcome} has to equal. */
function outcomeOf({ code, retryAfterSeconds }: Expectation): object {
  if (code === 'answered') return { code: expect.stringMatching(/^(answered|created)$/) };
  const { retryable } = errorCodes[code as ErrorCode];
  return { code, retryable, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
}

/** The operation, on a taxpayer and a job that nobody has asked for yet, and what goes wrong with it. */
async function stage(gateway: TestGateway, { endpoint, document, readsToken }: Operation) {
  const { sandbox, query } = gateway;
  const createdAt = new Date(Date.now()).toISOString(); // by the clock of this test
  const { id: taxpayerId } = sandbox.addTaxpayer({ status: 'AUTHORIZED', createdAt });
  const { jobId } = sandbox.addJob({ taxpayerId });
  const triesSoFar = () => metric(gateway, `gateway_upstream_calls_total{endpoint="${endpoint}",`);
  let triesBefore = 0;
  return {
    async run(idempotencyKey?: string): Promise<Outcome> {
      const input = { ...(idempotencyKey && { idempotencyKey }) };
      const variables = { taxpayerId, jobId, input };
      const answer = await query<Record<string, { replayed?: boolean } | null>>(document, variables);
      expect(JSON.stringify(answer)).not.toContain(upstreamOnlyText);
      expect(answer.status).toBe(200);
      if (answer.errors) return failureOf(answer.errors);
      if (endpoint !== 'createClientLink') return { code: 'answered' };
      return { code: answer.data?.[endpoint]?.replayed ? 'replayed' : 'created' };
    },

    async begin(fault: TableFault): Promise<void> {
      if (fault === 'outage') {
        // The service is there for the token, and gone when it is asked with it.
        if (readsToken)
          await query('query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id: taxpayerId });
        await sandbox.outage(true);
      } else sandbox.arm({ endpoint, fault: typeof fault === 'string' ? faults[fault] : fault });
      triesBefore = await triesSoFar();
    },

    async end(fault: TableFault): Promise<void> {
      sandbox.disarmAll();
      if (fault === 'outage') await sandbox.outage(false);
    },

    /** Calls begun since the fault began, as the gateway counts them: the service cannot count those that do not arrive. */
    tries: async () => (await triesSoFar()) - triesBefore,
  };
}

function failureOf(errors: readonly AnswerError[]): Outcome {
  expect(errors).toHaveLength(1);
  const [{ extensions }] = errors as [AnswerError];
  const { requestId: _, ...outcome } = extensions; // what every error has
  return outcome;
}
