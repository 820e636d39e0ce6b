import { isDeepStrictEqual } from 'node:util';
import { type ErrorCode, errorCodes, tokenRequired } from '../../../src/errors/errors.js';
import type { ApiEndpoint } from '../../../src/sandbox/endpoints.js';
import { startCollector } from '../../support/collector.js';
import type { Fault } from '../../support/fault.js';
import {
  type Environment,
  linesWith,
  post,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
} from '../../support/gateway.js';
import { rawSocket } from '../../support/rawSocket.js';
import { until } from '../../support/until.js';

// A caller who meets an error tells the operator its request id. The log must then say what happened, to whom, and why; metrics
// and trace say the same.

interface Scene {
  readonly document?: string;
  readonly variables?: object;
  /** What the service does to every call of an endpoint. */
  readonly fault?: readonly [ApiEndpoint, Fault];
  readonly env?: Environment;
  /** What has happened before: an operation, the beginning of a drain, or an outage of the identity provider. */
  readonly before?: 'another link' | 'another record' | 'draining' | 'no keys';
  readonly anonymous?: true;
  readonly cause: string | RegExp;
}

const scopes = 'client-links:create taxpayers:read taxpayer-tokens:read refresh-jobs:read';
const readRecord = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }';
const readJob = 'query ($id: ID!) { refreshJob(taxpayerId: $id, jobId: "job") { status } }';
const createLink = 'mutation ($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }';
const answered = (status: number): Fault => ({ status });

const scenes: Readonly<Partial<Record<ErrorCode, Scene>>> = {
  GRAPHQL_PARSE_FAILED: { document: '{', cause: 'Syntax Error: Expected Name, found <EOF>.' },
  GRAPHQL_VALIDATION_FAILED: { document: '{ nonsense }', cause: 'Cannot query field "…" on type "…".' },
  BAD_USER_INPUT: {
    document: 'query ($id: ID!) { taxpayerToken(taxpayerId: $id, maxAgeSeconds: -1) { name } }',
    cause: 'a value must be from 0 to 2592000',
  },
  UNAUTHENTICATED: { anonymous: true, cause: tokenRequired },
  FORBIDDEN: { variables: { id: 'of-another' }, cause: 'You do not have access to this taxpayer' },
  NOT_FOUND: { document: readJob, fault: ['refreshJob', answered(404)], cause: 'HTTP 404' },
  IDEMPOTENCY_CONFLICT: {
    document: createLink,
    variables: { input: { idempotencyKey: 'key', metadata: { a: 1 } } },
    before: 'another link',
    cause: 'This idempotencyKey was already used with different input',
  },
  OUTCOME_UNKNOWN: {
    document: createLink,
    variables: { input: {} },
    fault: ['createClientLink', answered(500)],
    cause: 'HTTP 500',
  },
  TOKEN_BUDGET_EXHAUSTED: {
    env: { TOKEN_BUDGET_PER_HOUR: '1', TOKEN_BUDGET_CALLER_SHARE: '1' },
    before: 'another record',
    cause: 'At most 1 token calls per hour for the fleet (TOKEN_BUDGET_PER_HOUR)',
  },
  UPSTREAM_RATE_LIMITED: { fault: ['taxpayerToken', answered(429)], cause: 'HTTP 429' },
  TAXPAYER_NOT_AUTHORIZED: {
    document: readJob,
    fault: ['refreshJob', answered(403)],
    cause: 'HTTP 403',
  },
  UPSTREAM_CREDENTIALS_REJECTED: {
    fault: ['taxpayerToken', answered(401)],
    cause: 'HTTP 401',
  },
  UPSTREAM_REJECTED: { fault: ['taxpayerToken', answered(409)], cause: 'HTTP 409' },
  UPSTREAM_TIMEOUT: {
    fault: ['taxpayerToken', { gate: 'never' }],
    env: { UPSTREAM_TIMEOUT_MS: '50', UPSTREAM_DEADLINE_MS: '100' },
    cause: /no answer in time|no time left for a try/,
  },
  UPSTREAM_UNAVAILABLE: { fault: ['taxpayerToken', answered(503)], cause: 'HTTP 503' },
  UPSTREAM_INVALID_RESPONSE: {
    fault: ['taxpayerToken', { body: 'null' }],
    cause: 'null',
  },
  AUTH_UNAVAILABLE: { before: 'no keys', cause: 'key set: ' },
  RATE_LIMITED: {
    document: '{ first: __typename second: __typename }', // too many in any minute
    env: { RATE_LIMIT_PER_MINUTE: '1' },
    cause: 'At most 1 root fields per minute (RATE_LIMIT_PER_MINUTE)',
  },
  SHUTTING_DOWN: {
    document: 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }', // queries are still answered
    before: 'draining',
    cause: 'The gateway is shutting down',
  },
};

/** The gateway or the service is to blame: see AvailabilityAtRisk in docs/runbook.md. */
const usesErrorBudget = /^(UPSTREAM_(?!REJECTED)|OUTCOME_UNKNOWN|AUTH_UNAVAILABLE)/;

interface Sent {
  readonly gateway: TestGateway;
  readonly requestId: string;
  readonly authorization: string | undefined;
  readonly document: string;
  readonly variables: object;
}

/** Each sends an operation, and gives what its caller is told. Over a socket, the request id is not the caller's own. */
const senders = {
  http: (sent: Sent) => ask(sent, '/graphql', 'application/json'),
  sse: (sent: Sent) => ask(sent, '/graphql/stream', 'text/event-stream'),
  ws: async ({ gateway, requestId, authorization, document: query, variables }: Sent) => {
    const socket = rawSocket(gateway.origin, { headers: { 'x-request-id': requestId } });
    await socket.opened.catch(() => {});
    if (socket.socket.readyState !== socket.socket.OPEN) return { requestId };
    socket.send({ type: 'connection_init', payload: { authorization } });
    const ready = socket.message('connection_ack').then(() => true);
    if (!(await Promise.race([ready, socket.closed.then(() => false)]))) return { requestId };
    socket.subscribe({ query, variables });
    return { requestId: idIn(JSON.stringify(await socket.answerTo('1'))) };
  },
};

async function ask(
  { gateway, requestId, authorization, document: query, variables }: Sent,
  path: string,
  accept: string,
) {
  const headers = { 'x-request-id': requestId, accept, ...(authorization !== undefined && { authorization }) };
  const response = await post(gateway.origin + path, { query, variables }, headers);
  return { requestId: idIn(await response.text()), status: response.status };
}

const idIn = (answer: string) => /"requestId":"([^"]+)"/.exec(answer)?.[1] ?? `none in ${answer}`;

describe('the request id of an error', () => {
  it.each(Object.entries(scenes))(
    '%s leads to a log line with caller and cause, on every transport, which metrics and trace agree with',
    async (code, scene) => {
      const [provider, collector] = [await startTrustedProvider(), await startCollector()];
      if (scene.before === 'no keys') provider.behave('drop');
      const gateway = await startTestGateway({
        ...provider.env,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        DRAIN_TIMEOUT_MS: scene.before === 'draining' ? '4000' : '0',
        ...scene.env,
      });
      const ids = ['of-the-caller', 'of-the-caller-too'];
      for (const id of ids) {
        gateway.sandbox.addTaxpayer({ id });
        gateway.sandbox.addJob({ taxpayerId: id, jobId: 'job' });
      }
      const authorization = `Bearer ${await provider.token({ scope: scopes, taxpayer_ids: ids })}`;
      if (scene.before === 'another link') {
        await gateway.query(createLink, { input: { idempotencyKey: 'key' } }, { authorization });
      }
      if (scene.before === 'another record') await gateway.query(readRecord, { id: ids[1] }, { authorization });
      if (scene.fault) gateway.sandbox.arm({ endpoint: scene.fault[0], fault: scene.fault[1] });
      const outcomes: unknown[] = [];
      const stopping = scene.before === 'draining' ? gateway.stop() : undefined;

      for (const [transport, send] of Object.entries(senders)) {
        if (transport === 'http' && code === 'SHUTTING_DOWN') continue;
        const before = await countsOf(gateway, code, transport);
        const told = await send({
          gateway,
          requestId: `${code}-${transport}`,
          authorization: scene.anonymous ? undefined : authorization,
          document: scene.document ?? readRecord,
          variables: scene.variables ?? { id: ids[0] },
        });
        const lines = (): Line[] => linesWith(gateway.logs, { msg: 'operation', requestId: told.requestId });
        await until(() => lines().length > 0);
        const isKnown = !['UNAUTHENTICATED', 'AUTH_UNAVAILABLE', 'SHUTTING_DOWN'].includes(code);
        expect(lines()).toMatchObject([
          {
            ...told,
            transport,
            outcome: usesErrorBudget.test(code) ? 'failed' : expect.stringMatching(/^(refused|errors)$/),
            codes: [code],
            cause:
              scene.cause instanceof RegExp ? expect.stringMatching(scene.cause) : expect.stringContaining(scene.cause),
            ...(isKnown && { caller: expect.stringMatching(/^[\w-]{43}$/), callerKind: 'bearer' }),
          },
        ]);
        if (scene.document === createLink) {
          expect(linesWith(gateway.logs, { audit: 'client-link-requested', outcome: code })).not.toEqual([]);
        }
        const [line] = lines();
        if (code === 'TOKEN_BUDGET_EXHAUSTED') expect(line).not.toHaveProperty('tokenCalls');
        outcomes.push(line?.outcome);
        if (before === undefined) continue; // a gateway that drains shows no metrics
        const after = await countsOf(gateway, code, transport);
        expect(after?.errors).toBe((before?.errors ?? 0) + 1);
        const counted = `${line?.operation} ${line?.outcome}`;
        expect(after?.[counted]).toBe((before[counted] ?? 0) + 1);
      }
      await stopping;
      await gateway.stop();
      const traced = collector.spans
        .map(({ attributes }) => attributes)
        .filter((span) => isDeepStrictEqual(span['gateway.codes'], [code]));
      expect(traced.map((span) => span['gateway.outcome'])).toEqual(expect.arrayContaining(outcomes));
      expect(traced).toHaveLength(outcomes.length);
    },
    30_000,
  );

  it('is tried for every code that a caller can meet', () => {
    const { INTERNAL_SERVER_ERROR: _, ...met } = errorCodes; // see test/gateway/faults/maskedBug.test.ts
    expect(Object.keys(scenes).sort()).toEqual(Object.keys(met).sort());
  });
});

/** How often the code, and each operation with its outcome on the transport, were counted. */
async function countsOf({ origin }: TestGateway, code: string, transport: string) {
  const page = await fetch(`${origin}/metrics`)
    .then((response) => (response.ok ? response.text() : undefined))
    .catch(() => undefined);
  if (page === undefined) return undefined;
  const series = new RegExp(
    `^gateway_operations_total\\{operation="(\\w+)",transport="${transport}",outcome="(\\w+)"\\} (\\d+)`,
    'gm',
  );
  const counts: Record<string, number> = {};
  for (const [, operation, outcome, count] of page.matchAll(series)) counts[`${operation} ${outcome}`] = Number(count);
  counts['errors'] = Number(new RegExp(`gateway_errors_total\\{code="${code}"\\} (\\d+)`).exec(page)?.[1]);
  return counts;
}

interface Line {
  readonly outcome?: string;
  readonly operation?: string;
}
