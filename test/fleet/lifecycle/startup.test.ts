import { createServer } from 'node:http';
import { loadConfig } from '../../../src/config/config.js';
import { demoData } from '../../../src/sandbox/demoData.js';
import { startGateway } from '../../../src/server.js';
import { freePort } from '../../support/freePort.js';
import { entry, postQuery, spawnGateway } from '../../support/gateway.js';
import { startProgram } from '../../support/program.js';
import { startRedis } from '../../support/redis.js';
import { read } from '../../support/repository.js';
import { scratch } from '../../support/scratch.js';
import { serve } from '../../support/serve.js';
import { transports } from '../../support/transports.js';
import { until } from '../../support/until.js';

it('The first screen is a readable page in a terminal', async () => {
  // `script` gives the command a terminal of its own
  const { child, printed, output, exited } = startProgram(
    'script',
    ['-qec', `"${process.execPath}" "${entry}"`, '/dev/null'],
    {
      cwd: scratch(),
      env: { PATH: process.env['PATH'], PORT: '0', UPSTREAM_BASEURL: 'x' },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  await printed(/Ctrl-C ends it/);
  const screen = output();
  expect(screen).toContain('UPSTREAM_BASEURL is not a setting: did you mean UPSTREAM_BASE_URL?');
  expect(screen).toMatch(/graphql +http:\/\/localhost:\d+\/graphql/);
  expect(screen).toMatch(/metrics +http:\/\/localhost:\d+\/metrics/);
  expect(screen).toContain('44444444-4444-4444-8444-444444444444');
  for (const { jobId } of Object.values(demoData.jobs)) expect(screen).toContain(jobId);
  expect(screen).toContain('taxpayerToken(taxpayerId:');
  child.stdin?.write('\x03');
  await exited;
}, 60_000);

it('A start that fails half-way leaves nothing open', async () => {
  const other = await serve(createServer());
  const config = loadConfig({
    PORT: new URL(other).port,
    METRICS_PORT: String(await freePort()),
    AUTH_ISSUER: other, // it does not answer
    AUTH_AUDIENCE: 'x',
  });
  let log = '';
  await expect(startGateway(config, { write: (line) => (log += line) })).rejects.toThrow('is already in use');
  // What was opened before the port: the embedded sandbox and the page of metrics.
  // A socket is listed for a moment after it is closed; `other` keeps no process alive.
  await until(() => !process.getActiveResourcesInfo().includes('TCPServerWrap'));
  expect(log).toBe('');
});

it('The bundle, in which classes may have other names, serves the committed schema as well', async () => {
  const gateway = await spawnGateway({ PORT: '0', AUTH_MODE: 'disabled' });
  const { data } = await postQuery<{ _service: { sdl: string } }>(gateway.origin, '{ _service { sdl } }');
  expect(`${data?._service.sdl.trim()}\n`).toBe(read('src/schema/schema.graphql'));
});

const query =
  '{ taxpayer(id: "44444444-4444-4444-8444-444444444444") { token { status } refreshJob(jobId: "cccccccc-cccc-4ccc-8ccc-cccccccccccc") { status } } }';
const mutation = 'mutation { createClientLink(input: { idempotencyKey: "one" }) { clientLink { url } replayed } }';

it.each(['a file', 'Redis'] as const)(
  'The gateway writes nothing but its log, whatever Node.js it runs on: %s',
  async (store) => {
    const gateway = await spawnGateway({
      PORT: '0',
      CACHE_URL: store === 'Redis' ? (await startRedis()).url : `file:${scratch()}`,
      // As an error, a deprecation ends the process.
      NODE_OPTIONS: '--throw-deprecation --pending-deprecation',
    });
    for (const send of Object.values(transports)) {
      expect(await send(gateway, JSON.stringify({ query }))).toContain('"AUTHORIZED"');
    }
    expect(await transports.HTTP(gateway, JSON.stringify({ query: mutation }))).toContain('"replayed":false');
    for (const path of ['/', '/graphiql', '/metrics', '/health/ready']) {
      expect((await fetch(`${gateway.origin}${path}`)).status).toBe(200);
    }
    expect(await gateway.stop()).toBe(0);
    const lines = gateway.output().trimEnd().split('\n');
    expect(lines.filter((line) => !/^\{"level":"(info|audit)"/.test(line))).toEqual([]);
  },
  60_000,
);
