import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from '@jest/globals';
import { loadConfig } from '../../../src/config/config.js';
import { demoData } from '../../../src/sandbox/demoData.js';
import { startGateway } from '../../../src/server.js';
import { freePort } from '../../support/freePort.js';

const entry = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

describe('The first screen', () => {
  it('is a readable page in a terminal', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'taxpayer-gateway-screen-'));
    // `script` gives the command a terminal of its own
    const child = spawn('script', ['-qec', `"${process.execPath}" "${entry}"`, '/dev/null'], {
      cwd: directory,
      env: { PATH: process.env['PATH'], PORT: '0', UPSTREAM_BASEURL: 'x' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    stops.push(() => rmSync(directory, { recursive: true, force: true }));
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
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    stops.push(() => other.close());
    const metricsPort = await freePort();
    const config = loadConfig({
      PORT: String((other.address() as AddressInfo).port),
      METRICS_PORT: String(metricsPort),
      CACHE_URL: 'memory:',
      AUTH_MODE: 'disabled',
    });
    await expect(startGateway(config, { logDestination: { write: () => {} } })).rejects.toThrow('is already in use');
    // What was opened before the port: the embedded sandbox and the page of metrics.
    await expect(fetch(`http://127.0.0.1:${metricsPort}/metrics`)).rejects.toThrow('fetch failed');
    const isServer = (resource: string) => resource === 'TCPServerWrap';
    expect(process.getActiveResourcesInfo().filter(isServer)).toHaveLength(1);
  });
});
