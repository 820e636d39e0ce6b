import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { settings } from '../../src/config/settings.js';
import { startTestDecisionPoint } from '../support/decisionPoint.js';
import { type Answer, postQuery, startTestGateway } from '../support/gateway.js';
import { startIdentityProvider } from '../support/identityProvider.js';
import { until } from '../support/redis.js';

const root = resolve(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/decision-point.md'), 'utf8');
const blocks = (language: string) =>
  [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, found, text = '']) =>
    found === language ? [text] : [],
  );
const taxpayerId = '44444444-4444-4444-8444-444444444444';

const directory = mkdtempSync(join(tmpdir(), 'decision-point-docs-'));
afterAll(() => rmSync(directory, { recursive: true }));
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

describe('docs/decision-point.md', () => {
  it('links to files that exist and names settings that exist', () => {
    const links = [...page.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, link = '']) => link);
    expect(links.filter((link) => !existsSync(join(root, 'docs', link)))).toEqual([]);
    const files = [...page.matchAll(/`(examples\/[\w./-]+)`/g)].map(([, file = '']) => file);
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
    const names = [...page.matchAll(/\b((?:AUTH|MAX)_[A-Z_]+)\b/g)].map(([, name = '']) => name.replace(/_FILE$/, ''));
    expect(names.filter((name) => !(name in settings) && name !== 'AUTH_UNAVAILABLE')).toEqual([]);
  });

  it('shows what the gateway sends, and what a decision point answers', async () => {
    const issuer = 'https://id.example/';
    const [provider, point] = await Promise.all([startIdentityProvider({ issuer }), startTestDecisionPoint()]);
    stops.push(provider.stop, point.stop);
    const gateway = await startTestGateway({
      AUTH_MODE: 'jwt',
      AUTH_JWKS_URL: provider.jwksUrl,
      AUTH_ISSUER: issuer,
      AUTH_AUDIENCE: provider.audience,
      AUTH_DECISION_URL: point.url,
      AUTH_DECISION_CLAIMS: 'tenant',
    });
    stops.push(gateway.stop);
    point.allow('ada', [taxpayerId]);
    const scope = 'taxpayers:read taxpayer-tokens:read';
    const ask = async (fields: string, claims: object) => {
      const authorization = `Bearer ${await provider.token({ sub: 'ada', scope, ...claims })}`;
      const query = `{ taxpayerToken(taxpayerId: "${taxpayerId}") { ${fields} } }`;
      expect((await gateway.query(query, {}, { authorization })).errors).toBeUndefined();
    };
    await ask('name', { tenant: 'acme' });
    await ask('name accessToken', {});
    expect(point.asked.map(({ body }) => body)).toEqual(blocks('json').map((text) => JSON.parse(text)));
  });

  it('has commands that work: what the lists hold is shown, until it is taken out', async () => {
    const [decisions = '', start = '', token = ''] = blocks('bash').flatMap((text) => text.trim().split('\n'));
    const lists = join(directory, 'lists.json');
    writeFileSync(lists, readFileSync(join(root, 'examples/decision-point/lists.json')));
    const [, address = ''] = await begin(`${decisions} -- --port 0 --lists ${lists}`, /^AUTH_DECISION_URL=(.*)$/m);
    const gateway = `AUTH_DECISION_TTL_SECONDS=1 ${start.replace('http://127.0.0.1:4180', address)}`;
    const [, port] = await begin(gateway, /"graphql":"http:\/\/[^"]*:(\d+)\/graphql"/);
    const [bearer] = await begin(token, /^[\w.-]+$/m);
    const ask = async (id: string) => {
      const query = `{ taxpayerToken(taxpayerId: "${id}") { status } }`;
      const answer: Answer<{ taxpayerToken: unknown }> = await postQuery(
        `http://127.0.0.1:${port}`,
        query,
        {},
        {
          authorization: `Bearer ${bearer}`,
        },
      );
      return answer.errors?.[0]?.extensions.code ?? answer.data?.taxpayerToken;
    };
    expect(await ask(taxpayerId)).toEqual({ status: 'AUTHORIZED' });
    expect(await ask('55555555-5555-4555-8555-555555555555')).toBe('FORBIDDEN');
    writeFileSync(lists, '{ "local-developer": [] }');
    await until(async () => (await ask(taxpayerId)) === 'FORBIDDEN');
  }, 120_000);
});

/** Runs a command of the page until it has printed what is expected. */
async function begin(command: string, expected: RegExp): Promise<RegExpExecArray> {
  const child = spawn('sh', ['-c', `exec env ${command}`], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: directory, PORT: '0', CACHE_URL: `lmdb:${join(directory, 'cache')}` },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const closed = once(child, 'close');
  stops.push(async () => {
    // npm and what it started, as Ctrl-C in a terminal would.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGINT');
    await closed;
  });
  let text = '';
  for await (const chunk of child.stdout) {
    text += String(chunk);
    const found = expected.exec(text);
    if (found) return found;
  }
  throw new Error(`The command ended: ${text}`);
}
