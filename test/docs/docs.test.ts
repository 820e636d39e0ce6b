import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { errorCodes } from '../../src/errors/errorCodes.js';
import { type GatewayProcess, spawnGateway } from '../support/gateway.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8');
/** Those that somebody follows from the start to the end. */
const pages = [
  'CONTRIBUTING.md',
  ...['getting-started', 'operations', 'network', 'log', 'alerts', 'architecture', 'adding-an-endpoint'].map(
    (name) => `docs/${name}.md`,
  ),
  ...['decisions', 'guides'].flatMap((folder) =>
    readdirSync(`${root}docs/${folder}`).map((name) => `docs/${folder}/${name}`),
  ),
];
const allPages = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...readdirSync(`${root}docs`, { recursive: true }).flatMap((name) =>
    `${name}`.endsWith('.md') ? [`docs/${name}`] : [],
  ),
];
const blocksOf = (page: string, language: string) =>
  [...read(page).matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, found, text = '']) =>
    found === language ? [text] : [],
  );
/** The headings of a page, as links name them. */
const headingsOf = (page: string) =>
  [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const npmBuiltIns = ['ci', 'audit', 'test', 'start', 'publish', 'install', 'pack'];

let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await spawnGateway({ PORT: '0' });
}, 120_000);
afterAll(() => gateway?.stop());

describe.each(allPages)('%s', (page) => {
  it('links to files that exist and names commands that exist', () => {
    for (const [, path = '', heading] of read(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([\w-]+))?/g)) {
      const linked = path === '' ? page : `${page.slice(0, page.lastIndexOf('/') + 1)}${path}`;
      expect({ path, exists: existsSync(`${root}${linked}`) }).toEqual({ path, exists: true });
      if (heading !== undefined) expect(headingsOf(linked)).toContain(heading);
    }
    for (const [, name = ''] of read(page).matchAll(/npm (?:run )?(?:--silent )?(\w[\w:]*)/g)) {
      expect([...Object.keys(scripts), ...npmBuiltIns]).toContain(name);
    }
    for (const [, path = ''] of read(page).matchAll(/`((?:src|docs|test|ops|examples)\/[\w./-]+)`/g)) {
      expect({ path, exists: existsSync(`${root}${path}`) }).toEqual({ path, exists: true });
    }
  });
});

it('docs/errors.md has a row and a section for every code, and says which can be repeated', () => {
  const page = read('docs/errors.md');
  const rows = [...page.matchAll(/^\| \[(\w+)\]\(#\w+\) \| (yes|no) \|/gm)].map(([, code, again]) => [code, again]);
  const codes = Object.entries(errorCodes);
  expect(rows).toEqual(codes.map(([code, { retryable }]) => [code, retryable ? 'yes' : 'no']));
  expect([...page.matchAll(/^## (.*)$/gm)].map(([, code]) => code)).toEqual(codes.map(([code]) => code));
});

describe.each(pages)('%s', (page) => {
  it('is under two screens', () => {
    expect(read(page).split('\n').length).toBeLessThanOrEqual(110);
  });

  const documents = blocksOf(page, 'graphql');
  if (documents.length > 0) {
    it.each(documents)('has an operation that works: %s', async (query) => {
      const response = await fetch(`${gateway.origin}/graphql/stream`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
        body: JSON.stringify({ query }),
      });
      const events = await response.text();
      expect(events).toContain('event: next');
      expect(events).toContain('"data":{');
      expect(events).not.toContain('"errors"');
    });
  }

  const commands = blocksOf(page, 'bash').flatMap((text) => text.trim().split('\n'));
  const curls = commands.filter((line) => line.startsWith('curl'));
  if (curls.length > 0) {
    it.each(curls)('has a command that works: %s', async (line) => {
      const here = line.replace('http://localhost:4000', gateway.origin);
      const { stdout } = await promisify(execFile)('sh', ['-c', here]);
      expect(stdout).not.toBe('');
      expect(stdout).not.toContain('"errors"');
    });
  }
  const tokens = commands.filter((line) => line.startsWith('npm run --silent dev:token'));
  if (tokens.length > 0) {
    it.each(tokens)('has a command that prints a token: %s', async (line) => {
      const directory = mkdtempSync(join(tmpdir(), 'developer-key-'));
      const { stdout } = await promisify(execFile)('sh', ['-c', `${line} --dir ${directory}`], { cwd: root });
      rmSync(directory, { recursive: true });
      const claims = JSON.parse(Buffer.from(stdout.split('.')[1] ?? '', 'base64url').toString());
      expect(claims).toMatchObject({ scope: 'taxpayers:read', taxpayer_ids: [expect.stringMatching(/^4{8}-/)] });
    });
  }
  it('has only commands of the kinds that are tried', () => {
    expect(
      commands.filter((line) => !/^(curl|npm run --silent dev:token|npm (ci|start|test|run \w+)$)/.test(line)),
    ).toEqual([]);
  });
});
