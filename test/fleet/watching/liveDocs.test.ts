import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { composeSupergraph } from '../../../examples/supergraph/composeSupergraph.js';
import { settings } from '../../../src/config/settings.js';
import { startTestGateway } from '../../support/gateway.js';
import { quickPolls } from '../../support/liveJob.js';

const root = resolve(import.meta.dirname, '../../..');
const run = promisify(execFile);

function page(name: string) {
  const text = readFileSync(join(root, 'docs', name), 'utf8');
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, code = '']) => ({ language, code }));
}

describe('docs/live-updates.md', () => {
  const blocks = page('live-updates.md');

  it('has the blocks that are tried below, and no others', () => {
    expect(blocks.map(({ language }) => language)).toEqual(['sh', 'js']);
  });

  it.each([0, 1])('follows a job to its end in block %d', async (index) => {
    const gateway = await startTestGateway(quickPolls, { jobDurationMs: 300 });
    try {
      const code = (blocks[index]?.code ?? '').replaceAll('localhost:4000', new URL(gateway.origin).host);
      const { stdout } =
        blocks[index]?.language === 'sh'
          ? await run('sh', ['-c', code.replace('curl', 'curl -s')])
          : await run(process.execPath, ['--input-type=module', '-e', code], { cwd: root });
      expect(stdout.match(/PROCESSING|COMPLETED/g)).toEqual(['PROCESSING', 'COMPLETED']);
    } finally {
      await gateway.stop();
    }
  });
});

describe('The typed client', () => {
  it('follows a taxpayer to the end as its README shows', async () => {
    const gateway = await startTestGateway();
    try {
      const code =
        page('../packages/client/README.md')[1]?.code.replaceAll('localhost:4000', new URL(gateway.origin).host) ?? '';
      const cwd = join(root, 'packages/client');
      const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { cwd });
      expect(stdout).toMatch(/^COMPLETED/);
    } finally {
      await gateway.stop();
    }
  });
});

describe('the configuration of routers', () => {
  const read = (file: string) => readFileSync(join(root, 'examples/supergraph', file), 'utf8');
  const names = [
    ...composeSupergraph({ taxpayersUrl: 'http://a', casesUrl: 'http://b' }).matchAll(/@join__graph\(name: "(\w+)"/g),
  ].map(([, name]) => name);
  const borderHeader = 'x-gateway-router-secret';

  it.each(['router.yaml', 'router.graphos.yaml'])(
    '%s fits the subgraphs, the border header and the settings',
    (file) => {
      const text = read(file);
      const { headers, subscription, include_subgraph_errors, ...others } = parse(text);
      expect(names).toEqual(expect.arrayContaining(Object.keys(headers.subgraphs)));
      expect(headers.subgraphs.taxpayers.request[0].insert.name).toBe(borderHeader);
      expect(headers.all.request).toContainEqual({ propagate: { named: 'authorization' } });
      expect(include_subgraph_errors).toEqual({ all: true });
      const variables = [...text.matchAll(/\$\{env\.(\w+)\}/g)].map(([, name = '']) => name);
      expect(variables.filter((name) => !(name in settings))).toEqual([]);
      const passthrough = { subgraphs: { taxpayers: { path: '/graphql', protocol: 'graphql_ws' } } };
      // What Apollo Router serves with a licence alone: subscriptions, JWT, directives.
      if (file === 'router.yaml') expect([subscription, Object.keys(others)]).toEqual([undefined, ['supergraph']]);
      else expect(subscription.mode).toEqual({ passthrough });
    },
  );

  it('of rover names both subgraphs and their schemas', () => {
    const { subgraphs } = parse(read('supergraph.yaml'));
    expect(Object.keys(subgraphs).sort()).toEqual([...names].sort());
    for (const { schema } of Object.values<{ schema: { file: string } }>(subgraphs)) {
      expect(existsSync(join(root, 'examples/supergraph', schema.file))).toBe(true);
    }
  });

  it('without scopes, a supergraph has nothing for which Apollo Router asks for a licence', async () => {
    const command = ['examples/supergraph/composeSupergraph.js', '--without-scopes'];
    const { stdout } = await run(process.execPath, command, { cwd: root });
    expect(stdout).toContain('join__Graph');
    expect(stdout).not.toMatch(/requiresScopes|specs\.apollo\.dev\/authenticated/);
  });

  it('of Cosmo fits the subgraphs, the paths, the border header and the settings', () => {
    const graph = parse(read('cosmo/graph.yaml'));
    expect(graph.subgraphs.map(({ name }: { name: string }) => name).sort()).toEqual([...names].sort());
    for (const { schema } of graph.subgraphs) {
      expect(existsSync(join(root, 'examples/supergraph/cosmo', schema.file))).toBe(true);
    }
    const [{ routing_url: routingUrl, subscription }] = graph.subgraphs;
    expect([new URL(routingUrl).pathname, new URL(subscription.url).pathname]).toEqual(['/graphql', '/graphql']);
    const text = read('cosmo/config.yaml');
    const config = parse(text);
    expect(config.headers.subgraphs.taxpayers.request[0].name).toBe(borderHeader);
    expect(config.headers.all.request).toContainEqual({ op: 'propagate', named: 'Authorization' });
    const variables = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
    expect(variables.filter((name) => !(name in settings))).toEqual([]);
  });
});
