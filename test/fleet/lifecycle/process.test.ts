import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { readProviders } from '../../../src/schema/Provider.js';
import { environmentFor, launchGateway, postQuery, spawnGateway } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

const entry = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
const unreachable = {
  PORT: '0',
  UPSTREAM_BASE_URL: 'http://127.0.0.1:9/',
  UPSTREAM_CLIENT_ID: 'a',
  UPSTREAM_CLIENT_SECRET: 'b',
  AUTH_MODE: 'disabled',
};

const directory = scratch();
const sandbox = await startSandbox();

describe('Without configuration', () => {
  it('serves what it prints, and Ctrl-C ends it', async () => {
    const child = spawn(process.execPath, [entry], {
      env: { PATH: process.env['PATH'], PORT: '0', DRAIN_TIMEOUT_MS: '0' },
      cwd: directory,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    const ready = await readyLine(child.stdout);
    const { data, errors } = await postQuery(new URL(ready.graphql).origin, ready.firstQuery);
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({ taxpayerToken: { status: 'AUTHORIZED' }, refreshJob: { status: 'PROCESSING' } });
    expect(ready.demo.taxpayerIds.authorized).toBe(sandbox.demo.taxpayerIds.authorized);
    child.kill('SIGINT');
    expect(await exited).toEqual([0, null]);
  });
});

describe('npm start', () => {
  const start = () =>
    spawn('npm', ['--silent', 'start'], {
      env: { ...process.env, PORT: '0', NODE_OPTIONS: '', CACHE_URL: 'memory:', DRAIN_TIMEOUT_MS: '200' },
      cwd: fileURLToPath(new URL('../../..', import.meta.url)),
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });

  it('drains and ends with 0 on Ctrl-C, which the terminal sends to both npm and the gateway', async () => {
    const npm = start();
    const exited = once(npm, 'exit');
    let output = '';
    npm.stdout.on('data', (chunk) => {
      output += String(chunk);
    });
    await until(() => output.includes('"msg":"ready"'), 60_000);
    process.kill(-(npm.pid ?? 0), 'SIGINT');
    expect(await exited).toEqual([0, null]);
    const messages = [...output.matchAll(/"msg":"(draining|stopped)"/g)].map(([, message]) => message);
    expect(messages).toEqual(['draining', 'stopped']);
  });

  it('hands SIGTERM to the gateway: none is left behind', async () => {
    const npm = start();
    const { health } = await readyLine(npm.stdout);
    npm.kill('SIGTERM');
    const isThere = () =>
      fetch(health).then(
        () => true,
        () => false,
      );
    await until(async () => !(await isThere()));
  });
});

it('npm start reads .env, which yields to the environment', async () => {
  const cwd = scratch();
  writeFileSync(join(cwd, '.env'), '\uFEFFPORT=0\nLOG_LEVEL=no such level\nCACHE_URL=memory:\nNODE_ENV=production\n');
  const env = { npm_lifecycle_event: 'start', LOG_LEVEL: 'info' };
  const child = spawn(process.execPath, [entry], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ready: object = await readyLine(child.stdout);
  expect(ready).toMatchObject({ store: 'memory:', graphql: expect.not.stringContaining(':4000/') });
  expect(ready).not.toHaveProperty('graphiql');
  child.kill('SIGTERM');
  await once(child, 'exit');
});

describe('The command line', () => {
  it.each([
    ['--help', /^taxpayer-gateway: .*\n[\s\S]*UPSTREAM_BASE_URL/],
    ['--version', new RegExp(`^${version.replaceAll('.', '\\.')}\n$`)],
  ])('answers %s and ends', async (flag, text) => {
    const { output, exited } = launchGateway({ PORT: 'not looked at' }, [flag]);
    expect(await exited).toBe(0);
    expect(output()).toMatch(text);
  });

  it('refuses what it does not know in one line', async () => {
    const { output, exited } = launchGateway({}, ['--prot', '80']);
    expect(await exited).toBe(2);
    expect(output()).toMatch(/^There is no such option.*\nSee taxpayer-gateway --help\n$/);
  });
});

describe('A configuration that cannot work', () => {
  const fails = async (env: Readonly<Record<string, string>>) => {
    const { output, exited } = launchGateway({ PORT: '0', ...env });
    expect(await exited).toBe(1);
    expect(output()).not.toMatch(/^ {4}at /m);
    return output().trimEnd().split('\n');
  };

  it('ends the process with a line for every variable that is missing', async () => {
    expect(await fails({ UPSTREAM_BASE_URL: 'http://127.0.0.1:9/' })).toEqual([
      expect.stringMatching(/^UPSTREAM_CLIENT_ID is required/),
      expect.stringMatching(/^UPSTREAM_CLIENT_SECRET .*is required/),
      expect.stringMatching(/^AUTH_ISSUER is required/),
      expect.stringMatching(/^AUTH_AUDIENCE is required/),
    ]);
  });

  it('ends the process with a line for every mistake, without any value', async () => {
    const lines = await fails({ PORT: 'planted', LOG_LEVEL: 'planted', MAX_DEPTH: '0', UPSTREAM_BASEURL: 'planted' });
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['PORT', 'LOG_LEVEL', 'MAX_DEPTH', 'UPSTREAM_BASEURL']);
    expect(lines.join()).not.toContain('planted');
  });

  it('is one line for a secret that is set and in a file as well: which of the two is meant?', async () => {
    const file = join(directory, 'secret');
    writeFileSync(file, 'another-router-secret');
    const env = { FEDERATION_SHARED_SECRET: 'the-router-secret', FEDERATION_SHARED_SECRET_FILE: file };
    expect(await fails(env)).toEqual([
      'FEDERATION_SHARED_SECRET and FEDERATION_SHARED_SECRET_FILE are both set: expected one of them',
    ]);
  });

  it("is reported in one line when the port is taken, or the host is another machine's", async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    for (const [setting, settings] of [
      ['PORT', {}],
      ['METRICS_PORT', { PORT: '0' }],
    ] as const) {
      expect(await fails({ ...settings, [setting]: String(port) })).toEqual([
        `Port ${port} is already in use: stop the other process or set ${setting}`,
      ]);
    }
    taken.close();
    const elsewhere = await fails({ HOST: '192.0.2.1', AUTH_MODE: 'disabled', CACHE_URL: 'memory:' });
    expect(elsewhere).toContain('HOST is not an address of this machine');
  });

  it.each([
    ['no JSON', '[', /^PROVIDERS_FILE is not JSON$/],
    [
      'a name that is none',
      '[{"name":"a b","value":"x","description":"y"}]',
      /^PROVIDERS_FILE \[0\.name\] must be an enum name/,
    ],
    ['a name twice', listed(['A', 'x'], ['A', 'y']), /^PROVIDERS_FILE .*must not repeat a name$/],
    ['a value twice', listed(['A', 'x'], ['B', 'x']), /^PROVIDERS_FILE .*must not repeat a value$/],
  ])('is told in one line for a provider catalogue with %s', (_, content, line) => {
    const file = join(directory, 'providers.json');
    writeFileSync(file, content);
    expect(() => readProviders(file)).toThrow(line);
  });
});

describe('A gateway with a provider catalogue of its own', () => {
  it('shows that catalogue, renames included, in place of the built-in one', async () => {
    const file = join(directory, 'catalogue.json');
    writeFileSync(file, listed(['TAX_OFFICE', 'irs'], ['OTHER', 'other']));
    const { origin } = await spawnGateway({ ...environmentFor(sandbox), CACHE_URL: 'memory:', PROVIDERS_FILE: file });
    const { data } = await postQuery<{ __type: object; a: object; b: object }>(
      origin,
      `{
        __type(name: "Provider") { enumValues { name description } }
        a: taxpayerToken(taxpayerId: "${sandbox.demo.taxpayerIds.authorized}") { provider providerId }
        b: taxpayerToken(taxpayerId: "${sandbox.demo.taxpayerIds.consentReceived}") { provider providerId }
      }`,
    );
    expect(data).toMatchObject({
      __type: {
        enumValues: [
          { name: 'TAX_OFFICE', description: 'About TAX_OFFICE' },
          { name: 'OTHER' },
          { name: 'UNRECOGNIZED' },
        ],
      },
      a: { provider: 'TAX_OFFICE', providerId: 'irs' },
      b: { provider: 'UNRECOGNIZED', providerId: 'irs_tax_pro' },
    });
  });
});

describe('A running gateway', () => {
  it('opens no debugger on SIGUSR1', async () => {
    const { origin, child, output } = await spawnGateway({ ...unreachable, CACHE_URL: 'memory:' });
    child.kill('SIGUSR1');
    for (let n = 0; n < 5; n += 1) expect((await fetch(`${origin}/health/live`)).status).toBe(200);
    expect(output()).not.toMatch(/debugger/i);
  });

  it.each(['SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const)('answers what is under way when %s ends it', async (signal) => {
    const gateway = await spawnGateway({ ...environmentFor(sandbox), CACHE_URL: 'memory:', DRAIN_TIMEOUT_MS: '10000' });
    const { id } = sandbox.control.addTaxpayer();
    sandbox.control.setLatency(500);
    sandbox.control.resetCounters();
    const called = sandbox.control.whenCalled('taxpayerToken', 1);
    const asked = postQuery(gateway.origin, `{ taxpayerToken(taxpayerId: "${id}") { status } }`);
    await called;
    const exited = once(gateway.child, 'exit');
    gateway.child.kill(signal);
    expect((await asked).data).toEqual({ taxpayerToken: { status: 'CREATED' } });
    expect(await exited).toEqual([0, null]);
    sandbox.control.setLatency(0);
  });

  it('is ended at once by a second signal more than a second later, whatever is under way', async () => {
    const settings = { DRAIN_TIMEOUT_MS: '300000', UPSTREAM_TIMEOUT_MS: '60000', UPSTREAM_DEADLINE_MS: '60000' };
    const { origin, child } = await spawnGateway({ ...environmentFor(sandbox), CACHE_URL: 'memory:', ...settings });
    sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { gate: 'never' } });
    const { id } = sandbox.control.addTaxpayer();
    sandbox.control.resetCounters();
    const called = sandbox.control.whenCalled('taxpayerToken', 1);
    const asked = postQuery(origin, `{ taxpayerToken(taxpayerId: "${id}") { status } }`);
    asked.catch(() => {});
    await called;
    child.kill('SIGTERM');
    await until(async () => (await fetch(`${origin}/health/ready`)).status === 503);
    child.kill('SIGTERM');
    await delay(1100);
    expect(child.exitCode).toBeNull();
    child.kill('SIGTERM');
    await until(() => child.exitCode !== null);
    expect(child.exitCode).toBe(1);
    await expect(asked).rejects.toThrow();
    sandbox.control.disarmAll();
  });
});

interface ReadyLine {
  readonly graphql: string;
  readonly health: string;
  readonly firstQuery: string;
  readonly demo: { readonly taxpayerIds: Readonly<Record<string, string>> };
}

async function readyLine(output: NodeJS.ReadableStream): Promise<ReadyLine> {
  let text = '';
  for await (const chunk of output) {
    text += String(chunk);
    const line = text.split('\n').find((candidate) => candidate.includes('"msg":"ready"'));
    if (line?.endsWith('}')) return JSON.parse(line) as ReadyLine;
  }
  throw new Error(`The gateway ended before it was ready: ${text}`);
}

function listed(...entries: readonly (readonly [name: string, value: string])[]): string {
  return JSON.stringify(entries.map(([name, value]) => ({ name, value, description: `About ${name}` })));
}
