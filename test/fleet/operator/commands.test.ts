import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { makeAuthority } from '../../support/certificate.js';
import {
  type Environment,
  entry,
  environmentFor,
  type GatewayProcess,
  postQuery,
  spawnGateway,
  startTrustedProvider,
} from '../../support/gateway.js';
import { startIssuerMetadata } from '../../support/issuerMetadata.js';
import { startProgram } from '../../support/program.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { commandJson, runCommand } from '../../support/runCommand.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { serve } from '../../support/serve.js';

const commandNames = ['check', 'inspect', 'forget', 'pseudonym', 'sandbox'];
const takesNoId = ['check', 'sandbox'];
const key = Buffer.alloc(32, 'k').toString('base64');
const nextKey = Buffer.alloc(32, 'n').toString('base64');
const planted = {
  name: 'Planted Name 8123',
  metadata: { ssn: 'planted-ssn-8123' },
  accessToken: 'planted-token-8123',
} as const;
const query = `query ($id: ID!, $job: ID!) {
  taxpayerToken(taxpayerId: $id) { name }
  refreshJob(taxpayerId: $id, jobId: $job) { status }
}`;

let sandbox: Sandbox;
let directory: string;
let redis: TestRedis;
let env: Environment;
let gateway: GatewayProcess;
beforeAll(async () => {
  directory = scratch();
  redis = await startRedis();
  sandbox = await startSandbox({ clientSecret: 'planted-client-secret-8123' });
  env = {
    ...environmentFor(sandbox),
    CACHE_URL: redis.url,
    CACHE_ENCRYPTION_KEY: key,
  };
  gateway = await spawnGateway(env);
}, 60_000);

/** A taxpayer whose record and two jobs are stored, with ids that must not be seen. */
async function storedTaxpayer(id: string, { origin } = gateway) {
  sandbox.addTaxpayer({ ...planted, id, status: 'AUTHORIZED' });
  for (const [job, status] of [
    [`${id}-job-done`, 'completed'],
    [`${id}-job-open`, 'processing'],
  ] as const) {
    sandbox.addJob({ taxpayerId: id, jobId: job, name: planted.name, status, durationMs: Infinity });
    expect((await postQuery(origin, query, { id, job })).errors).toBeUndefined();
  }
  return id;
}

describe('inspect', () => {
  it('shows kinds and ages, for people and for programs, and nothing that was planted', async () => {
    const id = await storedTaxpayer('planted-taxpayer-1');
    const found = await commandJson(env, 'inspect', id);
    expect(found).toMatchObject({
      ok: true,
      store: expect.stringMatching(/^redis:\/\//),
      taxpayer: expect.stringMatching(/^[\w-]{43}$/),
    });
    const seconds = expect.any(Number);
    const times = { ageSeconds: seconds, keptForSeconds: seconds };
    const whats = ['token record', 'job status', 'job status'];
    expect(found.entries).toEqual(whats.map((what) => ({ what, ...times })));
    // The record, and the job that is done; the other is kept for an hour.
    const days = found.entries.map(({ keptForSeconds }: { keptForSeconds: number }) => keptForSeconds / 86_400);
    expect(days.sort()).toEqual([expect.closeTo(1 / 24), expect.closeTo(30), expect.closeTo(30)]);

    const { code, stdout, stderr } = await runCommand(env, ['inspect', '-'], `${id}\n`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^ {2}token record, \d+ s old, kept for \d+ s$/m);
    for (const shown of [stdout, JSON.stringify(found)]) expect(shown).not.toMatch(/planted/i);
  });

  it('says so when nothing is stored, and remembers an absence', async () => {
    const stdout = expect.stringMatching(/nothing is stored\n$/);
    expect(await runCommand(env, ['inspect', 'never-seen'])).toMatchObject({ code: 0, stdout });
    await postQuery(gateway.origin, '{ taxpayerToken(taxpayerId: "unknown-one") { name } }');
    const [absence] = (await commandJson(env, 'inspect', 'unknown-one')).entries;
    expect(absence.keptForSeconds).toBeLessThanOrEqual(30);
  });

  it('shows a cool-down, which forget ends', async () => {
    const id = await storedTaxpayer('planted-taxpayer-2');
    const fault = sandbox.arm({ endpoint: 'refreshJob', fault: { status: 401 } });
    await postQuery(gateway.origin, query, { id, job: `${id}-job-other` });
    sandbox.disarm(fault);
    const coolDown = async () => (await commandJson(env, 'inspect', id)).coolDownSeconds;
    expect(await coolDown()).toEqual(expect.any(Number));
    await runCommand(env, ['forget', id]);
    expect(await coolDown()).toBeUndefined();
  });
});

it('forget erases record, jobs and absence, and says nothing that was planted', async () => {
  const id = await storedTaxpayer('planted-taxpayer-3');
  const { code, stdout, stderr } = await runCommand(env, ['forget', id, '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ erased: 3, taxpayer: expect.any(String), requestId: expect.any(String) });
  expect((await commandJson(env, 'inspect', id)).entries).toEqual([]);
  await postQuery(gateway.origin, '{ taxpayerToken(taxpayerId: "unknown-two") { name } }');
  expect((await runCommand(env, ['forget', 'unknown-two'])).stdout).toMatch(/: 1 entry erased \(request \S+\)\n$/);
  expect(stdout + stderr).not.toMatch(/planted/i);
});

it('with a store in a file, inspect reads beside a running gateway; forget needs it stopped, and leaves nothing in the directory', async () => {
  const store = join(directory, 'store');
  const ofFile = { ...env, CACHE_URL: `file:${store}` };
  const running = await spawnGateway(ofFile);
  const id = await storedTaxpayer('planted-taxpayer-4', running);
  const other = await storedTaxpayer('planted-taxpayer-5', running);
  expect((await commandJson(ofFile, 'inspect', id)).entries).toHaveLength(3);
  const refused = await runCommand(ofFile, ['forget', id]);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^CACHE_URL: another gateway uses .*\n$/) });
  expect(await running.stop()).toBe(0);
  const before = readFileSync(join(store, 'journal')).length;
  expect((await commandJson(ofFile, 'forget', id)).erased).toBe(3);
  expect(readFileSync(join(store, 'journal')).length).toBeLessThan(before);
  expect((await commandJson(ofFile, 'inspect', id)).entries).toEqual([]);
  expect((await commandJson(ofFile, 'inspect', other)).entries).toHaveLength(3);
}, 60_000);

describe('pseudonym', () => {
  it('prints the hash that the log has, with that of a previous key after it', async () => {
    const { pseudonym } = await commandJson(env, 'pseudonym', 'some-taxpayer');
    const rotating = { ...env, CACHE_ENCRYPTION_KEY: `${nextKey},${key}` };
    const { code, stdout } = await runCommand(rotating, ['pseudonym', 'some-taxpayer']);
    expect(code).toBe(0);
    expect(stdout.split('\n')).toEqual([expect.stringMatching(/^[\w-]{43}$/), pseudonym, '']);
    expect((await commandJson(env, 'forget', 'some-taxpayer')).taxpayer).toBe(pseudonym);
  });

  it.each([
    ['--issuer', 'https://id.example', ''],
    ['--issuer=', 'subject'],
  ])('is refused for a caller without an issuer or a subject: %s %s', async (...args) => {
    expect(await runCommand({}, ['pseudonym', ...args])).toMatchObject({ code: 2, stdout: '' });
  });

  it('works with the embedded sandbox, which needs no configuration', async () => {
    expect((await runCommand({}, ['pseudonym', 'some-taxpayer'])).code).toBe(0);
  });
});

describe('check', () => {
  let configured: Environment;
  beforeAll(async () => {
    configured = { ...env, ...(await startTrustedProvider()).env };
  });

  it('fails where only the start would fail: at files of the service, and a directory that cannot be made', async () => {
    const file = import.meta.filename;
    const wrong = { UPSTREAM_CA_FILE: file, CACHE_URL: `file:${file}/cache` };
    const { stdout } = await runCommand(wrong, ['check', '--json']);
    expect(JSON.parse(stdout).parts).toMatchObject([
      { ok: false, detail: 'UPSTREAM_CA_FILE does not hold certificates in PEM' },
      { ok: false, detail: `CACHE_URL: ${file} is not a directory that can be written to` },
    ]);
  });

  it('says that the sandbox would serve where no service is configured, and warns of a Redis that would delete idempotency keys', async () => {
    const { url } = await startRedis({ args: ['--maxmemory-policy', 'volatile-lru'] });
    const { stdout } = await runCommand({ CACHE_URL: url }, ['check']);
    expect(stdout).toContain('configuration: complete, for the embedded sandbox\n');
    expect(stdout).toMatch(/^ok {4} {2}store: redis .*; set maxmemory-policy noeviction: volatile-lru may delete/m);
  });

  it('asks no decision point where the gateway would not', async () => {
    const { parts } = await commandJson({ AUTH_MODE: 'disabled', AUTH_DECISION_URL: 'http://127.0.0.1:9/' }, 'check');
    expect(parts.map(({ part }: { part: string }) => part)).toEqual(['configuration', 'store']);
  });

  it('tries store, key set and service, which gets nothing but a plain GET of its base address', async () => {
    const seen: object[] = [];
    const service = createServer(({ method, url, headers }, response) => {
      seen.push({ method, url, authorization: headers.authorization });
      response.writeHead(302, { location: '/elsewhere' }).end();
    });
    const metadata = await startIssuerMetadata();
    const issuer = `${metadata.origin}/tenant/`;
    metadata.documents.set('/tenant/.well-known/openid-configuration', {
      issuer,
      jwks_uri: configured['AUTH_JWKS_URL'],
    });
    const others = { UPSTREAM_BASE_URL: `${await serve(service)}/v1`, AUTH_ISSUER: issuer, AUTH_JWKS_URL: '' };
    const { ok, parts } = await commandJson({ ...configured, ...others }, 'check');
    expect({ ok, parts }).toEqual({
      ok: true,
      parts: [
        { part: 'configuration', ok: true, detail: 'complete' },
        { part: 'store', ok: true, detail: expect.stringMatching(/^redis writes, reads and deletes in \d+ ms$/) },
        { part: `key set of ${issuer}`, ok: true, detail: '1 key' },
        {
          part: 'service',
          ok: true,
          detail: expect.stringMatching(/^UPSTREAM_BASE_URL answers \(HTTP 302\) in \d+ ms$/),
        },
      ],
    });
    expect(seen).toEqual([{ method: 'GET', url: '/v1', authorization: undefined }]);
  });

  it('takes no other protocol for an answer of the service', async () => {
    const service = createServer().on('connection', (socket) => socket.end('SSH-2.0-x\r\n'));
    const { stdout } = await runCommand({ ...env, UPSTREAM_BASE_URL: await serve(service) }, ['check']);
    expect(stdout).toMatch(/^FAILED {2}service: UPSTREAM_BASE_URL does not answer: HPE_INVALID_CONSTANT$/m);
  });

  const { certFile, keyFile } = makeAuthority(scratch(), 'ca').issue('own', undefined, -1);
  it.each([
    ['configuration', { PROVIDERS_FILE: import.meta.filename }, /^PROVIDERS_FILE is not JSON$/],
    [
      'configuration',
      { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile },
      /^TLS_CERT_FILE holds a certificate that has expired$/,
    ],
    [
      'store',
      { CACHE_URL: 'redis://:planted-password@127.0.0.1:9' },
      /^CACHE_URL \(redis:\/\/127.0.0.1:9, with a password\): Redis cannot be reached/,
    ],
    [
      'trusted documents',
      { TRUSTED_DOCUMENTS_FILE: import.meta.filename },
      /^TRUSTED_DOCUMENTS_FILE is not JSON: .*commands\.test\.ts$/,
    ],
    ['service', { UPSTREAM_BASE_URL: 'http://127.0.0.1:9/' }, /^UPSTREAM_BASE_URL does not answer: ECONNREFUSED$/],
    [
      'decision point',
      { AUTH_DECISION_URL: 'http://127.0.0.1:9/', AUTH_DECISION_TOKEN: 'planted' },
      /^AUTH_DECISION_URL does not answer: ECONNREFUSED$/,
    ],
    ['key set of', { AUTH_JWKS_URL: 'http://127.0.0.1:9/' }, /^network: .*ECONNREFUSED/],
  ])('finds a %s that does not work, ends with 1, and says no secret', async (part, wrong, detail) => {
    const { code, stdout, stderr } = await runCommand({ ...configured, ...wrong }, ['check', '--json']);
    const { ok, parts } = JSON.parse(stdout);
    expect({ code, ok, stderr }).toEqual({ code: 1, ok: false, stderr: '' });
    const failed = parts.filter((each: { ok: boolean }) => !each.ok);
    expect(failed).toMatchObject([{ part: expect.stringContaining(part), detail: expect.stringMatching(detail) }]);
    expect(stdout).not.toContain('planted');
  });

  it('names every wrong setting', async () => {
    const found = commandJson({ PORT: 'x', LOG_LEVEL: 'x' }, 'check');
    await expect(found).rejects.toThrow(/ended with 1: .*"PORT must.*"LOG_LEVEL must/);
  });
});

describe('sandbox', () => {
  it.each(['people', 'programs'])(
    'tells %s its demo data, serves on every address, and ends on a signal though connections are open',
    async (whom) => {
      const given = ['--port', '0', '--host', '0.0.0.0'];
      if (whom === 'programs') given.push('--json');
      const { printed, output, signal, exited } = startProgram(process.execPath, [entry, 'sandbox', ...given], {
        env: {},
      });
      const url = await printed(/(http:[^"\s]+)/);
      expect(new URL(url).hostname).toBe('localhost');
      expect(output()).toMatch(/processing.*bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb/);
      const authorization = `Bearer ${Buffer.from('sandbox-client:sandbox-secret-not-real').toString('base64')}`;
      const path = `/auth/tax-payer/${await printed(/authorized"?: ?"?([\w-]+)/)}/token`;
      expect((await fetch(url + path, { headers: { authorization } })).status).toBe(200);
      signal(whom === 'people' ? 'SIGINT' : 'SIGTERM');
      expect(await exited).toBe(0);
    },
  );

  it('names a port that is in use or none, and a host that is none, in one line', async () => {
    const { port } = new URL(sandbox.url);
    const wrong = (problem: string) => ({ code: 2, stdout: '', stderr: `${problem}\nSee taxpayer-gateway --help\n` });
    const failed = (problem: string) => ({ code: 1, stdout: '', stderr: `${problem}\n` });
    for (const [option, text, answer] of [
      ['--port', port, failed(`Port ${port} is already in use: stop the other process or set --port`)],
      ['--port', '99999', wrong('--port must be a whole number from 0 to 65535')],
      ['--host', '', wrong('--host must be an address')],
      ['--host', 'x'.repeat(1000), failed('--host is not an address of this machine')],
    ] as const) {
      expect(await runCommand({}, ['sandbox', option, text])).toEqual(answer);
    }
  });
});

describe('Every command', () => {
  it.each(commandNames)('%s shows the help, and ends with 2 when it is called wrongly', async (name) => {
    const { code, stdout } = await runCommand({}, [name, '--help']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`taxpayer-gateway ${name}`) });
    const wrong = [[name, 'a', '--nope'], ...(takesNoId.includes(name) ? [] : [[name]])];
    for (const args of wrong) {
      const result = await runCommand(env, args);
      expect({ args, code: result.code, stdout: result.stdout }).toEqual({ args, code: 2, stdout: '' });
      expect(result.stderr).toMatch(/\n?See taxpayer-gateway .*--help\n$/);
    }
  });

  it('says in one line that its output cannot be written', () => {
    const { status, stderr } = spawnSync('sh', ['-c', `"${process.execPath}" "${entry}" --version > /dev/full`]);
    expect([status, `${stderr}`]).toEqual([1, 'The standard output cannot be written to (ENOSPC)\n']);
  });

  it('does not repeat what it was called wrongly with', async () => {
    const ids = ['--123-45-6789', '-123-45-6789', '--json=123-45-6789', '--help=123-45-6789'];
    for (const args of [['check', 'a/b'], ['forget', 'a/b', '123-45-6789'], ...ids.map((id) => ['inspect', id])]) {
      const { code, stdout, stderr } = await runCommand(env, args);
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
      expect(stderr).not.toContain('123-45');
      expect(stderr).not.toContain("'-1'");
    }
  });

  it.each(['inspect', 'forget'])('%s creates no store and leaves a running one alone', async (name) => {
    const nowhere = join(directory, 'nowhere');
    const missing = await runCommand({ ...env, CACHE_URL: `file:${nowhere}` }, [name, 'x']);
    expect(missing).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('there is no store in') });
    await expect(stat(nowhere)).rejects.toThrow('ENOENT');
    expect(await runCommand({ ...env, CACHE_URL: 'memory:' }, [name, 'x'])).toMatchObject({ code: 1 });
    expect(await runCommand({}, [name, 'x'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^UPSTREAM_BASE/),
    });
    const away = { ...env, CACHE_URL: 'redis://:planted-password@127.0.0.1:9' };
    const cause = /^CACHE_URL \(redis:\/\/127.0.0.1:9, with a password\): Redis cannot be reached.*\n$/;
    const failed = { code: 1, stdout: '', stderr: expect.stringMatching(cause) };
    expect(await runCommand(away, [name, 'x'])).toEqual(failed);
  });

  it('comes first: options before it are not taken for a question', async () => {
    const { code, stdout } = await runCommand({}, ['--json', 'check']);
    expect({ code, ok: JSON.parse(stdout).ok }).toEqual({ code: 2, ok: false });
  });

  it('is named by the help of the whole, which a wrong word points to', async () => {
    const { stdout } = await runCommand({}, ['help']);
    for (const name of commandNames) expect(stdout).toContain(`taxpayer-gateway ${name}`);
    const { code, stderr } = await runCommand({}, ['serve']);
    expect({ code, stderr: stderr.split('\n') }).toEqual({
      code: 2,
      stderr: [
        `The first argument is no command. Commands: ${commandNames.join(', ')}; without one the gateway starts`,
        'See taxpayer-gateway --help',
        '',
      ],
    });
  });
});
