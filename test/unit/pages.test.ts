import { existsSync, readdirSync } from 'node:fs';
import { allScopes } from '../../src/auth/caller.js';
import { errorCodes } from '../../src/errors/errorCodes.js';
import { auditActions } from '../../src/observability/LineLimit.js';
import { read } from '../support/repository.js';

const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'packages/client/README.md'],
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' }).flatMap((name) =>
    name.endsWith('.md') ? [`docs/${name}`] : [],
  ),
];
const { scripts, version } = JSON.parse(read('package.json')) as { scripts: Record<string, string>; version: string };
const commands = [
  'ci',
  'audit',
  'test',
  'start',
  'publish',
  'install',
  'pack',
  'sbom',
  'init',
  'pkg',
  ...Object.keys(scripts),
];

/** The headings of a page, as links name them. */
function anchorsOf(page: string) {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** The links, commands and paths of a page that lead nowhere. */
function deadEndsOf(page: string) {
  const text = read(page);
  const folder = page.slice(0, page.lastIndexOf('/') + 1);
  const links = [...text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([\w-]+))?\)/g)];
  const deadLinks = links.filter(([, path = '', anchor]) => {
    const linked = path === '' ? page : `${folder}${path}`;
    return !existsSync(linked) || (anchor !== undefined && !anchorsOf(linked).includes(anchor));
  });
  const named = [...text.matchAll(/npm (?:run )?(?:--silent )?(\w[\w:]*)/g)];
  const unknown = named.filter(([, command = '']) => !commands.includes(command));
  const paths = [...text.matchAll(/`((?:src|docs|test|bench|ops|examples)\/[\w./-]+)`/g)];
  const gone = paths.filter(([, path = '']) => !existsSync(path));
  return [...deadLinks, ...unknown, ...gone].map(([found]) => `${page}: ${found}`);
}

it('no page has a link, a command or a path that leads nowhere', () => {
  expect(pages.flatMap(deadEndsOf)).toEqual([]);
});

it('what names the image or a package names this version', () => {
  const manifests = readdirSync('ops/kubernetes', { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.yaml$/.test(name),
  );
  const files = [...pages, 'compose.yaml', 'compose.demo.yaml', ...manifests.map((name) => `ops/kubernetes/${name}`)];
  const others = files.flatMap((file) => {
    const found =
      read(file)
        .replaceAll(version, '')
        .match(/(?:taxpayer-gateway(?:-client)?[:-]|newTag: )\d\S*/g) ?? [];
    return found.map((name) => `${file}: ${name}`);
  });
  expect(others).toEqual([]);
});

it('docs/errors.md has a row and a section for every code, and says which can be repeated', () => {
  const page = read('docs/errors.md');
  const rows = [...page.matchAll(/^\| \[(\w+)\]\(#\w+\) \| (yes|no) \|/gm)].map(([, code, again]) => [code, again]);
  const codes = Object.entries(errorCodes);
  expect(rows).toEqual(codes.map(([code, { retryable }]) => [code, retryable ? 'yes' : 'no']));
  expect([...page.matchAll(/^## (.*)$/gm)].map(([, code]) => code)).toEqual(codes.map(([code]) => code));
});

it('docs/security.md has a row for every scope with its fields, and docs/log.md one for every audit line', () => {
  const [scopes, audits, sdl] = [read('docs/security.md'), read('docs/log.md'), read('src/schema/schema.graphql')];
  expect(allScopes.filter((scope) => !scopes.includes(`\n| \`${scope}\` |`))).toEqual([]);
  const published = sdl.matchAll(/^ {2}(\w+)(?:\(\n[\s\S]*?\n {2}\))?: .*@requiresScopes\(scopes: (.*?)\)/gm);
  const fields = Array.from(published, ([, field, scope]) => [field, scope]);
  expect(fields.length).toBeGreaterThan(8);
  for (const [field, scope] of fields) {
    const row = new RegExp(`^\\| \`(.+)\` \\| .*\`${field}\``, 'm').exec(scopes);
    expect({ field, scope }).toEqual({ field, scope: `[["${row?.[1]}"]]` });
  }
  expect(auditActions.filter((action) => !new RegExp(`^\\|.*\`${action}\`.* \\|`, 'm').test(audits))).toEqual([]);
});

it('docs/README.md lists every page', () => {
  const list = read('docs/README.md');
  const own = readdirSync('docs').filter((name) => name.endsWith('.md') && name !== 'README.md');
  expect(own.filter((name) => !list.includes(`](${name})`))).toEqual([]);
});
