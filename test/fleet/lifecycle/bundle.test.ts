import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { startCollector } from '../../support/collector.js';
import { postQuery, spawnGateway } from '../../support/gateway.js';

it('serves the committed schema from the bundle as well, in which classes may have other names', async () => {
  const gateway = await spawnGateway({ PORT: '0', CACHE_URL: 'memory:', AUTH_MODE: 'disabled' });
  try {
    const { data } = await postQuery<{ _service: { sdl: string } }>(gateway.origin, '{ _service { sdl } }');
    const committed = readFileSync(new URL('../../../src/schema/schema.graphql', import.meta.url), 'utf8');
    expect(`${data?._service.sdl.trim()}\n`).toBe(committed);
  } finally {
    await gateway.stop();
  }
});

it('exports traces from the bundle, in which the code for it is read when it is configured', async () => {
  const collector = await startCollector();
  const env = { PORT: '0', CACHE_URL: 'memory:', AUTH_MODE: 'disabled', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const gateway = await spawnGateway(env);
  try {
    await postQuery(gateway.origin, '{ __typename }');
    expect(await gateway.stop()).toBe(0);
    expect(collector.spans.map(({ name }) => name)).toContain('POST /graphql');
  } finally {
    await gateway.stop();
    await collector.stop();
  }
});
