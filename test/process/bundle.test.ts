import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { startCollector } from '../support/collector.js';
import { postQuery, spawnGateway } from '../support/gateway.js';

const dist = new URL('../../dist/', import.meta.url);

it('serves the committed schema from the bundle as well, in which classes may have other names', async () => {
  const gateway = await spawnGateway({ PORT: '0', CACHE_URL: 'memory:', AUTH_MODE: 'disabled' });
  try {
    const { data } = await postQuery<{ _service: { sdl: string } }>(gateway.origin, '{ _service { sdl } }');
    const committed = readFileSync(new URL('../../src/schema/schema.graphql', import.meta.url), 'utf8');
    expect(`${data?._service.sdl.trim()}\n`).toBe(committed);
  } finally {
    await gateway.stop();
  }
});

/** What Node.js reads before the first line of `file` runs: its own text and that of all it imports statically. */
function textsAtStart(file: string, seen = new Set<string>()): string {
  if (seen.has(file)) return '';
  seen.add(file);
  const text = readFileSync(new URL(file, dist), 'utf8');
  const imported = [...text.matchAll(/(?:from|import)"\.\/((?:chunks\/)?[\w-]+\.js)"/g)].map(([, name = '']) => name);
  return (
    text + imported.map((name) => textsAtStart(name.startsWith('chunks/') ? name : `chunks/${name}`, seen)).join('')
  );
}

it('holds the code of traces in a file that is not read at the start, and exports them when it is configured', async () => {
  const entry = textsAtStart('main.js');
  const [, serve = ''] = /import\("\.\/(chunks\/serve-\w+\.js)"\)/.exec(entry) ?? []; // what serves is no command
  const atStart = entry + textsAtStart(serve);
  expect(atStart).toContain('gateway_trace_spans_dropped_total');
  expect(atStart).not.toContain('OTLPTraceExporter');
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
