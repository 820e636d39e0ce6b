import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { loadConfig } from '../../../src/config/config.js';
import { demoData } from '../../../src/sandbox/demoData.js';
import { startGateway } from '../../../src/server.js';
import { startCollector } from '../../support/collector.js';
import { freePort } from '../../support/freePort.js';
import { type Environment, postQuery, spawnGateway } from '../../support/gateway.js';
import { startRedis } from '../../support/redis.js';
import { scratch } from '../../support/scratch.js';
import { serve } from '../../support/serve.js';
import { transports } from '../../support/transports.js';

const entry = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

describe('The first screen', () => {
  it('is a readable page in a terminal', async () => {
    const directory = scratch();
    // `script` gives the command a terminal of its own
    const child = spawn('script', ['-qec', `"${process.execPath}" "${entry}"`, '/dev/null'], {
      cwd: directory,
      env: { PATH: process.env['PATH'], PORT: '0', UPSTREAM_BASEURL: 'x' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let screen = '';
    for await (const chunk of child.stdout) {
      screen += String(chunk);
      if (screen.includes('Ctrl-C ends it')) break;
    }
    expect(screen).toContain('UPSTREAM_BASEURL is not a setting: did you mean UPSTREAM_BASE_URL?');
    expect(screen).toMatch(/graphql +http:\/\/localhost:\d+\/graphql/);
    expect(screen).toMatch(/metrics +http:\/\/localhost:\d+\/metrics/);
    expect(screen).toContain('44444444-4444-4444-8444-444444444444');
    for (const { jobId } of Object.values(demoData.jobs)) expect(screen).toContain(jobId);
    expect(screen).toContain('taxpayerToken(taxpayerId:');
    child.stdin.write('\x03');
    await once(child, 'exit');
  }, 60_000);
});

describe('A start that fails half-way', () => {
  it('leaves nothing open', async () => {
    const other = await serve(createServer());
    const metricsPort = await freePort();
    const config = loadConfig({
      PORT: new URL(other).port,
      METRICS_PORT: String(metricsPort),
      CACHE_URL: 'memory:',
      AUTH_MODE: 'disabled',
    });
    await expect(startGateway(config, { logDestination: { write: () => {} } })).rejects.toThrow('is already in use');
    // What was opened before the port: the embedded sandbox and the page of metrics.
    await expect(fetch(`http://127.0.0.1:${metricsPort}/metrics`)).rejects.toThrow('fetch failed');
    expect(process.getActiveResourcesInfo()).not.toContain('TCPServerWrap'); // `other` keeps no process alive
  });
});

describe('The bundle', () => {
  it('serves the committed schema from the bundle as well, in which classes may have other names', async () => {
    const gateway = await spawnGateway({ PORT: '0', CACHE_URL: 'memory:', AUTH_MODE: 'disabled' });
    const { data } = await postQuery<{ _service: { sdl: string } }>(gateway.origin, '{ _service { sdl } }');
    const committed = readFileSync(new URL('../../../src/schema/schema.graphql', import.meta.url), 'utf8');
    expect(`${data?._service.sdl.trim()}\n`).toBe(committed);
  });

  it('exports traces from the bundle, in which the code for it is read when it is configured', async () => {
    const collector = await startCollector();
    const env = { PORT: '0', CACHE_URL: 'memory:', AUTH_MODE: 'disabled', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    const gateway = await spawnGateway(env);
    await postQuery(gateway.origin, '{ __typename }');
    expect(await gateway.stop()).toBe(0);
    expect(collector.spans.map(({ name }) => name)).toContain('POST /graphql');
  });
});

describe('What is printed', () => {
  const query =
    '{ taxpayer(id: "44444444-4444-4444-8444-444444444444") { token { status } refreshJob(jobId: "cccccccc-cccc-4ccc-8ccc-cccccccccccc") { status } } }';
  const mutation = 'mutation { createClientLink(input: { idempotencyKey: "one" }) { clientLink { url } replayed } }';

  it.each(['a file', 'Redis'] as const)(
    'writes nothing but its log, whatever Node.js it runs on: %s',
    async (store) => {
      const gateway = await spawnGateway({
        PORT: '0',
        CACHE_URL: store === 'Redis' ? (await startRedis()).url : `file:${scratch()}`,
        // As an error, a deprecation ends the process.
        NODE_OPTIONS: '--throw-deprecation --pending-deprecation',
      } satisfies Environment);
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
});
