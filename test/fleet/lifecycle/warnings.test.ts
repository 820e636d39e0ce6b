import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { type Environment, spawnGateway } from '../../support/gateway.js';
import { startRedis } from '../../support/redis.js';
import { transports } from '../../support/transports.js';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const query =
  '{ taxpayer(id: "44444444-4444-4444-8444-444444444444") { token { status } refreshJob(jobId: "cccccccc-cccc-4ccc-8ccc-cccccccccccc") { status } } }';
const mutation = 'mutation { createClientLink(input: { idempotencyKey: "one" }) { clientLink { url } replayed } }';

it.each(['a file', 'Redis'] as const)(
  'writes nothing but its log, whatever Node.js it runs on: %s',
  async (store) => {
    const gateway = await spawnGateway({
      PORT: '0',
      CACHE_URL: store === 'Redis' ? await redisUrl() : `file:${scratch()}`,
      // As an error, a deprecation ends the process.
      NODE_OPTIONS: '--throw-deprecation --pending-deprecation',
    } satisfies Environment);
    stops.push(gateway.stop);
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

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-warnings-'));
  stops.push(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function redisUrl(): Promise<string> {
  const redis = await startRedis();
  stops.push(redis.stop);
  return redis.url;
}
