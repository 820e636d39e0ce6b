import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiEndpoint } from '../../../src/sandbox/endpoints.js';
import { endpoints } from '../../../src/upstream/ResilientFetch.js';
import { findCanaries, spellingsOf } from '../../support/canaries.js';
import { startCollector } from '../../support/collector.js';
import type { Fault } from '../../support/fault.js';
import { faultSamples } from '../../support/faults.js';
import {
  type Answer,
  environmentFor,
  type GatewayProcess,
  postQuery,
  spawnGateway,
  startTrustedProvider,
  type Texts,
  type TrustedProvider,
} from '../../support/gateway.js';
import { monitorCommands, startRedis, type TestRedis } from '../../support/redis.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { schema } from '../../support/schema.js';
import { scratch } from '../../support/scratch.js';
import { postEvents, streamReader } from '../../support/streamReader.js';

// Values that can be recognised are planted wherever something confidential may be, every operation is driven through
// every fault of the sandbox by a caller who may and one who may not, and then every byte that left the process is searched.

const canaries: Record<string, string> = {
  'access token': 'CanaryTokenQ7rT2wX9',
  'client secret': 'CanarySecretB4nM8kL1',
  'router secret': 'CanaryRouterZ6yH3jP5',
  'taxpayer id': 'CanaryTaxpayerV9cD2s',
  'taxpayer name': 'CanaryNameG5fR8tY1',
  'metadata value': 'CanaryMetaJ3hK6lW4',
  'link metadata': 'CanaryLinkMetaU8iO2p',
  'first name': 'CanaryFirstE1qA7z',
  'social security number': '917234461',
  'tax id': '947731905',
  'subject of the caller': 'CanarySubjectX2xC5v',
  'idempotency key': 'CanaryKeyD7sF4g',
  'what the service says in errors': 'CanaryUpstreamN9bM3q',
};
const { 'tax id': taxId, 'social security number': ssn } = canaries;

const scopes = 'client-links:create taxpayers:read taxpayer-tokens:read refresh-jobs:read';
const followRecord = `subscription ($id: ID!) {
  taxpayerTokenUpdated(taxpayerId: $id) { taxpayerId name metadata accessToken }
}`;
const readRecord =
  'query($id: ID!) { taxpayerToken(taxpayerId: $id) { taxpayerId accessToken name metadata status provider } }';
const readJob =
  'query($id: ID!) { refreshJob(taxpayerId: $id, jobId: "job", waitSeconds: 0) { name status taxpayer { id } } }';
const readEntity =
  'query($id: ID!) { taxpayer(id: $id) { id token { name metadata } refreshJob(jobId: "job") { name } } }';
const reads = [readRecord, readJob, readEntity];
const createLink = `mutation($input: CreateClientLinkInput!) {
  createClientLink(input: $input) { replayed clientLink { id url } }
}`;

test('every query and mutation of the schema is among the operations', () => {
  const fields = [schema.getQueryType(), schema.getMutationType()].flatMap((root) =>
    Object.keys(root?.getFields() ?? {}),
  );
  const asked = [...reads, createLink].join();
  expect(fields.filter((name) => !name.startsWith('_') && !asked.includes(` ${name}(`))).toEqual([]);
});

test('the search finds a value in every encoding it looks for, within other text', () => {
  const value = canaries['access token'] ?? '';
  for (const prefix of ['', 'a', 'ab']) {
    const texts = [`${prefix}${value}z`, Buffer.from(`${prefix}${value}z`).toString('base64')];
    for (const text of texts) expect(findCanaries(text, canaries).join()).toContain('access token');
  }
  for (const [how, needles] of Object.entries(spellingsOf(value))) {
    for (const needle of needles) {
      const bytes = Buffer.concat([Buffer.from('<'), Buffer.from(needle), Buffer.from('>')]);
      expect(findCanaries(bytes, { secret: value })).toContain(`secret ${how}`);
    }
  }
});

/*
 * Seen to fail, once for each of these, when it was taken away (and put back):
 *   the keyed hash in the audit line (services.ts)        → 'taxpayer id as it is' in what the process wrote
 *   the keyed hash of entry names (Sealer.ts)             → 'taxpayer id as it is' in the store
 *   the encryption of entries (SealedStore.ts)            → 'access token as it is' and all else of the record, in the store
 *   the rule for literals in syntax errors (maskError.ts) → 'social security number as it is' in errors
 * Seen not to fail, because another wall stands behind: `Secret.toJSON` (nothing logs or stores a Secret as it is) and the
 * masked message of INTERNAL_SERVER_ERROR (no fault of the service becomes a bug of ours).
 */
describe.each(['file', 'redis'] as const)('with a store in %s, nothing confidential is found', (kind) => {
  let provider: TrustedProvider;
  let sandbox: Sandbox;
  let gateway: GatewayProcess;
  let redis: TestRedis | undefined;
  let collector: Awaited<ReturnType<typeof startCollector>>;
  let entitled: Texts;
  let stranger: Texts;
  const directory = scratch();
  const monitored: string[] = [];
  const refusedAnswers: string[] = [];
  const shown: string[] = [];
  const found = { ...canaries };

  beforeAll(async () => {
    provider = await startTrustedProvider();
    collector = await startCollector();
    sandbox = await startSandbox({ clientSecret: canaries['client secret'] ?? '' });
    if (kind === 'redis') {
      // Uncompressed, so that what is stored can be found.
      redis = await startRedis({ args: ['--rdbcompression', 'no'] });
      await monitorCommands(redis.url, (command) => monitored.push(command));
    }
    gateway = await spawnGateway({
      ...environmentFor(sandbox),
      LOG_LEVEL: 'trace',
      LOG_OPERATIONS: 'all',
      AUDIT: 'all',
      CACHE_URL: redis?.url ?? `file:${directory}`,
      ...provider.env,
      FEDERATION_SHARED_SECRET: canaries['router secret'],
      RATE_LIMIT_PER_MINUTE: '0',
      TOKEN_BUDGET_PER_HOUR: '0',
      UPSTREAM_TIMEOUT_MS: '150',
      UPSTREAM_DEADLINE_MS: '300',
      BREAKER_RESET_MS: '1',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    });
    const claims = { sub: canaries['subject of the caller'], scope: scopes };
    const token = await provider.token({ ...claims, scope: `${scopes} taxpayers:any` });
    found['signature of a caller’s token'] = token.split('.')[2] ?? '';
    const router = { 'x-gateway-router-secret': canaries['router secret'] ?? '' };
    entitled = { authorization: `Bearer ${token}`, ...router };
    stranger = { authorization: `Bearer ${await provider.token({ ...claims, taxpayer_ids: ['another'] })}`, ...router };
  });

  test('while every operation meets every fault', async () => {
    // Again, should a call have taken a busy machine more than the 150 ms that it has.
    for (let n = 0; !('id of link' in found); n += 1) await driveOperations(addTaxpayer(`clean-${n}`), `clean-${n}`);
    shown.push(await firstEvent(addTaxpayer('followed'), entitled));
    for (const who of [stranger, {}]) refusedAnswers.push(await firstEvent(addTaxpayer('refused'), who));
    const all = faultSamples(canaries['what the service says in errors'] ?? '');
    // Very long answers take long, and are told of as one that is too long.
    const { hugeInChunks: _, gzipBomb: __, ...others } = all;
    const samples = Object.entries(others);
    // What is told of a fault does not depend on the store.
    for (const [name, fault] of kind === 'redis' ? samples : samples.slice(-3)) {
      for (const endpoint of endpoints) await driveFault(endpoint, name, fault);
    }
    // Otherwise the search would prove nothing: the entitled caller has seen what was planted.
    const seen = findCanaries(shown.join('\n'), found);
    for (const what of ['access token', 'taxpayer id', 'taxpayer name', 'metadata value']) {
      expect(seen).toContain(`${what} as it is`);
    }
    expect(Object.keys(found)).toEqual(expect.arrayContaining(['id of link', 'address of link']));
    expect(refusedAnswers.length).toBeGreaterThan(kind === 'redis' ? 300 : 100);
  }, 240_000);

  test('in answers to callers without the right, and in errors to anybody', () => {
    expect(findCanaries(refusedAnswers.join('\n'), found)).toEqual([]);
  });

  test('in the metrics and the health pages', async () => {
    for (const path of ['/metrics', '/health/live', '/health/ready']) {
      const text = await (await fetch(gateway.origin + path)).text();
      expect(text).not.toBe('');
      expect(findCanaries(text, found)).toEqual([]);
    }
  });

  test('on the command line of the process', () => {
    const commandLine = readFileSync(`/proc/${gateway.pid}/cmdline`);
    expect(commandLine.length).toBeGreaterThan(0);
    expect(findCanaries(commandLine, found)).toEqual([]);
  });

  test('in the store, while the process runs and when it has ended', async () => {
    const whileRunning = await bytesOfStore();
    await gateway.stop();
    for (const bytes of [whileRunning, await bytesOfStore()]) {
      expect(bytes.length).toBeGreaterThan(1000);
      expect(findCanaries(bytes, found)).toEqual([]);
    }
    expect(findCanaries(monitored.join('\n'), found)).toEqual([]);
    if (kind === 'redis') expect(monitored.length).toBeGreaterThan(100);
  });

  test('in spans', () => {
    const names = new Set(collector.spans.map(({ name }) => name));
    const seen = ['mutation createClientLink', 'createClientLink', 'taxpayerToken', 'refused request'];
    expect([...names]).toEqual(expect.arrayContaining(seen));
    expect(collector.spans.filter(({ status }) => status === 2).length).toBeGreaterThan(kind === 'redis' ? 100 : 10);
    expect(findCanaries(collector.requests.map(({ body }) => body).join('\n'), found)).toEqual([]);
  });

  test('in anything the process wrote, at the most talkative level', () => {
    const output = gateway.output();
    expect(output).toContain('"audit":"token-revealed"');
    expect(output).toContain('"audit":"client-link-requested"');
    for (const action of ['access-denied', 'token-refused', 'record-shown', 'job-shown']) {
      expect(output).toContain(`"audit":"${action}"`);
    }
    for (const outcome of ['ok', 'errors', 'refused']) expect(output).toMatch(`"outcome":"${outcome}"`);
    expect(output).toContain('"msg":"operation"');
    expect(output).toContain('calls to the service are failing');
    expect(findCanaries(output, found)).toEqual([]);
    // The whole of a value may be cut in lines: the number alone tells as much.
    expect(output).not.toContain('917-23-4461');
  });

  function addTaxpayer(label: string) {
    const id = `${canaries['taxpayer id']}-${label}`;
    sandbox.addTaxpayer({
      id,
      accessToken: `${canaries['access token']}-${label}`,
      name: `${canaries['taxpayer name']} ${label}`,
      metadata: { crm: { nested: canaries['metadata value'] }, ssn, taxId },
    });
    sandbox.addJob({ taxpayerId: id, jobId: 'job', name: `${canaries['taxpayer name']} job` });
    return id;
  }

  async function driveFault(endpoint: ApiEndpoint, name: string, fault: Fault) {
    const label = `${endpoint}-${name}`;
    const id = addTaxpayer(label);
    // A job is asked for with a token the gateway holds, so that the fault meets the job and not the token.
    if (endpoint === 'refreshJob') await driveOperations(id, `before-${label}`);
    sandbox.updateJob(id, 'job', { status: 'processing' });
    const armed = sandbox.arm({ endpoint, fault });
    await driveOperations(id, label);
    sandbox.disarm(armed);
    sandbox.release('never');
  }

  async function driveOperations(id: string, label: string) {
    const input = {
      idempotencyKey: `${canaries['idempotency key']}-${label}`,
      metadata: { note: canaries['link metadata'] },
      settings: {
        prefillData: {
          personalInfo: { firstName: canaries['first name'], lastName: 'X', ssn },
          businessInfo: { name: 'Y', taxId },
        },
      },
    };
    const operations = [
      ...reads.map((query) => [query, { id }] as const),
      [createLink, { input }],
      ['mutation($input: CreateClientLinkInput!) { createClientLink(input: $input) { nonsense } }', { input }],
      [createLink, { input: { metadata: canaries['link metadata'], ssn } }],
      [`{ taxpayer(id: "${id}") { id(ssn: "${ssn}") } }`, {}],
      [`{ "${ssn}" }`, {}],
    ] as const;
    for (const [query, variables] of operations) {
      const answers = await Promise.all([
        postQuery(gateway.origin, query, variables, entitled),
        query === createLink ? undefined : postQuery(gateway.origin, query, variables, stranger),
        postQuery(gateway.origin, query, variables, {}),
      ]);
      const [allowed, refused, anonymous] = answers as [Answer<Shown>, Answer | undefined, Answer];
      shown.push(JSON.stringify(allowed.data ?? null));
      refusedAnswers.push(JSON.stringify([allowed.errors ?? null, [...allowed.headers]]));
      for (const answer of [refused, anonymous]) if (answer) refusedAnswers.push(wholeOf(answer));
      noteLink(allowed.data, label);
    }
  }

  /** What somebody who follows a taxpayer is sent first. */
  async function firstEvent(id: string, headers: Texts) {
    const response = await postEvents(gateway, { query: followRecord, variables: { id } }, headers);
    const events = streamReader(response);
    const event = await events.next('\n\n');
    await events.cancel();
    return event ?? '';
  }

  function noteLink(data: Shown | null | undefined, label: string) {
    const link = data?.createClientLink?.clientLink;
    if (!link || !label.startsWith('clean')) return;
    found['id of link'] = link.id;
    found['address of link'] = link.url;
  }

  async function bytesOfStore() {
    if (redis) return redis.dump();
    return readFileSync(join(directory, 'journal'));
  }
});

interface Shown {
  readonly createClientLink?: { readonly clientLink: { readonly id: string; readonly url: string } };
}

function wholeOf({ data, errors, headers, status }: Answer) {
  return JSON.stringify({ status, data, errors, headers: [...headers] });
}
