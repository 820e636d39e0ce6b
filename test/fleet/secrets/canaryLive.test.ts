import { findCanaries } from '../../support/canaries.js';
import { startCollector } from '../../support/collector.js';
import type { Fault } from '../../support/fault.js';
import {
  type Environment,
  environmentFor,
  post,
  quickPolls,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
  type Texts,
} from '../../support/gateway.js';
import { rawSocket } from '../../support/rawSocket.js';
import { runCommand } from '../../support/runCommand.js';
import { scratch } from '../../support/scratch.js';
import { streamReader } from '../../support/streamReader.js';

// As canary.test.ts, for what stays open: planted values go through sockets, event streams and multipart, with and without
// faults of the service, at every level of the log; then through the operator's commands.

const canaries = {
  'access token': 'CanaryLiveTokenQ7rT2w',
  'client secret': 'CanaryLiveSecretB4nM8',
  'router secret': 'CanaryLiveRouterZ6yH3',
  'taxpayer id': 'CanaryLiveTaxpayerV9c',
  'job id': 'CanaryLiveJobP3mQ8s',
  'taxpayer name': 'CanaryLiveNameG5fR8t',
  'metadata value': 'CanaryLiveMetaJ3hK6l',
  'subject of the caller': 'CanaryLiveSubjectX2x',
  'id of a message': 'CanaryLiveMessageY8b',
  'unknown parameter of a socket': 'CanaryLiveParamM5vC2',
  'what is no message': 'CanaryLiveNoiseD6jF4',
  'what the service says in errors': 'CanaryLiveUpstreamN9b',
  'social security number': '917234462',
};
const { 'access token': accessToken, 'taxpayer id': taxpayer, 'job id': jobId, 'router secret': secret } = canaries;
const { 'metadata value': metadata, 'taxpayer name': name, 'social security number': ssn } = canaries;

const follow = `subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { taxpayerId name metadata accessToken } }`;
const followJob = `subscription ($id: ID!) { refreshJobUpdated(taxpayerId: $id, jobId: "${jobId}") { jobId status name } }`;
/** Each with the mistakes that callers make: values where names belong, and names that hold values. */
const documents = [follow, followJob, `subscription { refreshJobUpdated(taxpayerId: ${ssn}, x: "${ssn}") { status } }`];
const scopes = 'taxpayers:read taxpayer-tokens:read refresh-jobs:read taxpayers:any';

const levels = ['trace', 'info', 'silent'];
const faults: readonly (Fault | undefined)[] = [
  undefined,
  {
    status: 409,
    headers: { 'x-echo': canaries['what the service says in errors'] },
    body: JSON.stringify({ error: canaries['what the service says in errors'] }),
  },
];

let collector: Awaited<ReturnType<typeof startCollector>>;
let gateway: TestGateway;
const planted: Record<string, string> = { ...canaries };

const provider = await startTrustedProvider();

async function start(env: Environment): Promise<Environment> {
  collector = await startCollector();
  const settings = {
    ...provider.env,
    ...quickPolls,
    CACHE_URL: `file:${scratch()}`,
    LOG_OPERATIONS: 'all',
    AUDIT: 'all',
    DRAIN_TIMEOUT_MS: '0',
    FEDERATION_SHARED_SECRET: secret,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    ...env,
  };
  gateway = await startTestGateway(settings, { clientSecret: canaries['client secret'] });
  return { ...environmentFor(gateway.sandbox), ...settings };
}

function addTaxpayer(label: string) {
  const id = `${taxpayer}-${label}`;
  gateway.sandbox.addTaxpayer({
    id,
    accessToken: `${accessToken}-${label}`,
    name,
    metadata: { crm: metadata },
  });
  gateway.sandbox.addJob({ taxpayerId: id, jobId, name, durationMs: Infinity });
  return id;
}

/** One subscription over each transport; gives the first thing that its caller is sent. */
const transports = {
  ws: async (query: string, id: string, headers: Texts) => {
    const socket = rawSocket(gateway.origin);
    await socket.sendInit({ ...headers, extra: canaries['unknown parameter of a socket'] });
    const ready = socket.message('connection_ack').then(() => true);
    const closed = socket.closed.then(({ code, reason }) => `${code} ${reason}`);
    if (!(await Promise.race([ready, closed.then(() => false)]))) return closed;
    socket.subscribe({ query, variables: { id } }, canaries['id of a message']);
    const { type, payload } = await socket.answerTo(canaries['id of a message']);
    socket.send(`{"type":"subscribe","payload":"${canaries['what is no message']}"`);
    return JSON.stringify([type, payload, await closed]);
  },
  sse: (query: string, id: string, headers: Texts) =>
    firstPiece('/graphql/stream', 'text/event-stream', { query, variables: { id } }, headers, '\n\n'),
  multipart: (query: string, id: string, headers: Texts) =>
    firstPiece('/graphql', 'multipart/mixed;subscriptionSpec=1.0', { query, variables: { id } }, headers, '}\r\n'),
};

async function firstPiece(path: string, accept: string, body: object, headers: Texts, separator: string) {
  const response = await post(gateway.origin + path, body, { accept, ...headers });
  return firstOf(response, separator);
}

/** A query whose text and variables are in the address. */
async function readByGet(path: string, accept: string, id: string, headers: Texts) {
  const query = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { accessToken name } }';
  const search = new URLSearchParams({ query, variables: JSON.stringify({ id, ssn }) });
  return firstOf(await fetch(`${gateway.origin}${path}?${search}`, { headers: { accept, ...headers } }), '\n\n');
}

async function firstOf(response: Response, separator: string) {
  const pieces = streamReader(response);
  let text = '';
  while (!/"(data|errors)":/.test(text)) {
    const piece = await pieces.next(separator);
    if (piece === undefined) break;
    text += piece;
  }
  await pieces.cancel();
  return text;
}

it.each(levels)('nothing confidential is found of what stays open, at the level %s', async (level) => {
  await start({ LOG_LEVEL: level });
  const router = { 'x-gateway-router-secret': secret };
  const claims = { sub: canaries['subject of the caller'], scope: scopes };
  const token = await provider.token(claims);
  planted['signature of a token'] = token.split('.')[2] ?? '';
  const entitled = { authorization: `Bearer ${token}`, ...router };
  const others = { scope: 'taxpayers:read refresh-jobs:read', taxpayer_ids: ['another'] };
  const stranger = { authorization: `Bearer ${await provider.token({ ...claims, ...others })}`, ...router };
  const shown: string[] = [];
  const refused: string[] = [];
  const { sandbox } = gateway;
  for (const [transport, subscribe] of Object.entries(transports)) {
    for (const [n, fault] of faults.entries()) {
      const id = addTaxpayer(`${transport}-${n}`);
      if (fault) for (const endpoint of ['taxpayerToken', 'refreshJob'] as const) sandbox.arm({ endpoint, fault });
      for (const query of documents) {
        const answer = await subscribe(query, id, entitled);
        (fault || !answer.includes('"data":{') ? refused : shown).push(answer);
        if (n === 0) for (const who of [stranger, {}, router]) refused.push(await subscribe(query, id, who));
      }
      sandbox.disarmAll();
    }
  }
  const byGet = { ...entitled, 'apollo-require-preflight': 'true' };
  shown.push(await readByGet('/graphql', 'application/json', addTaxpayer('get'), byGet));
  shown.push(await readByGet('/graphql/stream', 'text/event-stream', addTaxpayer('get-stream'), byGet));
  for (const answer of shown.slice(-2)) expect(answer).toContain(accessToken);
  // Otherwise the search would prove nothing.
  const seen = findCanaries(shown.join('\n'), planted);
  for (const what of ['access token', 'taxpayer id', 'taxpayer name', 'metadata value', 'job id']) {
    expect(seen).toContain(`${what} as it is`);
  }
  expect(refused.length).toBeGreaterThan(35);
  expect(findCanaries(refused.join('\n'), planted)).toEqual([]);

  const metrics = await (await fetch(`${gateway.origin}/metrics`)).text();
  expect(metrics).toContain('gateway_operation_seconds_bucket');
  await gateway.stop();
  const logs = gateway.output();
  for (const line of [/"level":"info".*"msg":"operation"/, /"audit":"token-revealed"/]) {
    expect(line.test(logs)).toBe(level !== 'silent');
  }
  const spans = collector.requests.map(({ body }) => body).join('\n');
  for (const span of ['subscription refreshJobUpdated', 'subscription taxpayerTokenUpdated', 'refreshJob']) {
    expect(collector.spans.map((one) => one.name)).toContain(span);
  }
  for (const [where, text] of Object.entries({ metrics, logs, spans })) {
    expect({ where, found: findCanaries(text, planted) }).toEqual({ where, found: [] });
  }
});

it('nothing confidential is found in what the commands print, whether they succeed or fail', async () => {
  const env = await start({ LOG_LEVEL: 'trace' });
  const id = addTaxpayer('commands');
  const authorization = `Bearer ${await provider.token({ sub: canaries['subject of the caller'], scope: scopes })}`;
  const query = `query ($id: ID!) { taxpayerToken(taxpayerId: $id) { accessToken } refreshJob(taxpayerId: $id, jobId: "${jobId}") { name } }`;
  const { data } = await gateway.query<object>(query, { id }, { authorization });
  expect(JSON.stringify(data)).toContain(accessToken);
  const calls = [
    ...['inspect', 'pseudonym', 'forget'].map((command) => [command, id]),
    ['forget', id, '--json'],
    ['inspect', ` ${id}`],
    ['inspect', id, ssn],
    ['check', '--json'],
    ['check', id],
    [id],
  ];
  const results = [];
  for (const args of calls) results.push(await runCommand(env, args));
  for (const args of [
    ['inspect', id],
    ['forget', id],
  ]) {
    results.push(await runCommand({ ...env, CACHE_URL: `redis://:${secret}@127.0.0.1:1` }, args));
  }
  expect(new Set(results.map(({ code }) => code))).toEqual(new Set([0, 1, 2]));
  const printed = results.map(({ stdout, stderr }) => stdout + stderr).join('\n');
  expect(printed).toMatch(/token record/);
  expect(findCanaries(printed, planted)).toEqual([]);
}, 240_000);
