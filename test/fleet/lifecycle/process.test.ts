import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readProviders } from '../../../src/schema/Provider.js';
import {
  entry,
  environmentFor,
  launchGateway,
  postQuery,
  readyOrigin,
  spawnGateway,
  type Texts,
} from '../../support/gateway.js';
import { type Program, startProgram } from '../../support/program.js';
import { read } from '../../support/repository.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

const { version } = JSON.parse(read('package.json')) as { version: string };

const directory = scratch();
const sandbox = await startSandbox();

describe('npm start', () => {
  const start = () => {
    const env = { ...process.env, PORT: '0', NODE_OPTIONS: '', DRAIN_TIMEOUT_MS: '200' };
    return startProgram('npm', ['--silent', 'start'], { env, detached: true });
  };

  it('serves what it prints; it drains and ends with 0 on Ctrl-C, which the terminal sends to both npm and the gateway', async () => {
    const npm = start();
    const { graphql, firstQuery, demo } = await readyLine(npm);
    const { data, errors } = await postQuery(new URL(graphql).origin, firstQuery);
    const found = { taxpayerToken: { status: 'AUTHORIZED' }, refreshJob: { status: 'PROCESSING' } };
    expect([data, errors]).toMatchObject([found, undefined]);
    expect(demo.taxpayerIds).toEqual(sandbox.demo.taxpayerIds);
    npm.signal('SIGINT');
    expect(await npm.exited).toBe(0);
    const messages = [...npm.output().matchAll(/"msg":"(draining|stopped)"/g)].map(([, message]) => message);
    expect(messages).toEqual(['draining', 'stopped']);
  });

  it('hands SIGTERM to the gateway: none is left behind', async () => {
    const npm = start();
    await readyOrigin(npm);
    npm.child.kill('SIGTERM');
    await npm.exited; // its output ends with the last of them
  });
});

it('npm start reads .env, which yields to the environment', async () => {
  const cwd = scratch();
  writeFileSync(join(cwd, '.env'), 'PORT=0\nLOG_LEVEL=no such level\nCACHE_URL=memory:\nNODE_ENV=production\n');
  const env = { npm_lifecycle_event: 'start', LOG_LEVEL: 'info' };
  const ready: object = await readyLine(startProgram(process.execPath, [entry], { cwd, env }));
  expect(ready).toMatchObject({ store: 'memory:', graphql: expect.not.stringContaining(':4000/') });
  expect(ready).not.toHaveProperty('graphiql');
});

describe('The command line', () => {
  it.each([
    ['--help', 0, /^taxpayer-gateway: .*\n[\s\S]*UPSTREAM_BASE_URL/],
    ['--version', 0, new RegExp(`^${version.replaceAll('.', '\\.')}\n$`)],
    ['--prot 80', 2, /^There is no such option.*\nSee taxpayer-gateway --help\n$/],
  ])('answers %s and ends with %i', async (options, code, text) => {
    const { output, exited } = launchGateway({ PORT: 'not looked at' }, options.split(' '));
    expect(await exited).toBe(code);
    expect(output()).toMatch(text);
  });
});

describe('A configuration that cannot work', () => {
  const fails = async (env: Texts) => {
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
    for (const HOST of ['192.0.2.1', 'fe80::1']) {
      expect(await fails({ HOST, AUTH_MODE: 'disabled' })).toContain('HOST is not an address of this machine');
    }
  });

  it.each([
    [
      'a name that is none',
      '[{"name":"a b","value":"x","description":"y"}]',
      /^PROVIDERS_FILE \[0\.name\] must be an enum name/,
    ],
    ['a name twice', listed(['A', 'x'], ['A', 'y']), /^PROVIDERS_FILE .*must not repeat a name$/],
    ['a value twice', listed(['A', 'x'], ['B', 'x']), /^PROVIDERS_FILE .*must not repeat a value$/],
    ['a byte that is not UTF-8', listed(['A', '\ufffd']), /^PROVIDERS_FILE \[0\.value\] must be UTF-8/],
  ])('is told in one line for a provider catalogue with %s', (_, content, line) => {
    const file = join(directory, 'providers.json');
    writeFileSync(file, content);
    expect(() => readProviders(file)).toThrow(line);
  });
});

it('A gateway with a provider catalogue of its own shows that catalogue, renames included, in place of the built-in one', async () => {
  const file = join(directory, 'catalogue.json');
  writeFileSync(file, listed(['TAX_OFFICE', 'irs'], ['OTHER', 'other']));
  const { origin } = await spawnGateway({ ...environmentFor(sandbox), PROVIDERS_FILE: file });
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

describe('A running gateway', () => {
  it('opens no debugger on SIGUSR1', async () => {
    const { origin, child, output } = await spawnGateway(environmentFor(sandbox));
    child.kill('SIGUSR1');
    for (let n = 0; n < 5; n += 1) expect((await fetch(`${origin}/health/live`)).status).toBe(200);
    expect(output()).not.toMatch(/debugger/i);
  });

  it.each(['SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const)('answers what is under way when %s ends it', async (signal) => {
    const gateway = await spawnGateway({ ...environmentFor(sandbox), DRAIN_TIMEOUT_MS: '10000' });
    const { id } = sandbox.addTaxpayer();
    sandbox.setLatency(500);
    sandbox.resetCounters();
    const called = sandbox.whenCalled('taxpayerToken', 1);
    const asked = postQuery(gateway.origin, `{ taxpayerToken(taxpayerId: "${id}") { status } }`);
    await called;
    gateway.signal(signal);
    expect((await asked).data).toEqual({ taxpayerToken: { status: 'CREATED' } });
    expect(await gateway.exited).toBe(0);
    sandbox.setLatency(0);
  });

  it('is ended at once by a second signal more than a second later, whatever is under way', async () => {
    const settings = { DRAIN_TIMEOUT_MS: '300000', UPSTREAM_TIMEOUT_MS: '60000', UPSTREAM_DEADLINE_MS: '60000' };
    const { origin, child, exited } = await spawnGateway({ ...environmentFor(sandbox), ...settings });
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { gate: 'never' } });
    const { id } = sandbox.addTaxpayer();
    sandbox.resetCounters();
    const called = sandbox.whenCalled('taxpayerToken', 1);
    const asked = postQuery(origin, `{ taxpayerToken(taxpayerId: "${id}") { status } }`);
    asked.catch(() => {});
    await called;
    child.kill('SIGTERM');
    await until(async () => (await fetch(`${origin}/health/ready`)).status === 503);
    child.kill('SIGTERM');
    await delay(1100);
    expect(child.exitCode).toBeNull();
    child.kill('SIGTERM');
    expect(await exited).toBe(1);
    await expect(asked).rejects.toThrow();
    sandbox.disarmAll();
  });
});

interface ReadyLine {
  readonly graphql: string;
  readonly firstQuery: string;
  readonly demo: { readonly taxpayerIds: Texts };
}

async function readyLine({ printed }: Program): Promise<ReadyLine> {
  return JSON.parse(await printed(/^(\{.*"msg":"ready".*\})$/m));
}

function listed(...entries: readonly (readonly [name: string, value: string])[]) {
  return JSON.stringify(entries.map(([name, value]) => ({ name, value, description: `About ${name}` })));
}
