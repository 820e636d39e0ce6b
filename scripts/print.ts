// Prints the committed files that are made from the code (npm run codegen): schema, typed client, pages. With --check it writes
// nothing and names those that are out of date, and what would break a client of the last release (part of npm run check).

import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { codegen } from '@graphql-codegen/core';
import * as typedDocumentNode from '@graphql-codegen/typed-document-node';
import * as typescriptOperations from '@graphql-codegen/typescript-operations';
import { CriticalityLevel, DiffRule, diff } from '@graphql-inspector/core';
import { buildASTSchema, graphql, parse, print, visit } from 'graphql';
import { parse as parseYaml } from 'yaml';
import { settings, standardVariables } from '../src/config/settings.js';
import { type ErrorCode, errorCodes } from '../src/errors/errorCodes.js';
import { resolvers } from '../src/resolvers/index.js';
import { buildSchema } from '../src/schema/buildSchema.js';
import { maxTries } from '../src/upstream/ResilientFetch.js';
import faultTable from '../test/gateway/faults/faultTable.json' with { type: 'json' };

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
const schema = buildSchema(resolvers);
/** As a router reads it. */
const { data } = await graphql({ schema, source: '{ _service { sdl } }', contextValue: { facts: {} } });
const sdl = `${(data as { _service: { sdl: string } })._service.sdl.trim()}\n`;
const table = Object.entries(settings).map(([name, setting]) => ({ name, ...setting }));
const problems: string[] = [];
const read = (path: string): string => readFileSync(path, 'utf8');

update('src/schema/schema.graphql', sdl);
update('packages/client/schema.graphql', clientSdl(sdl));
update('packages/client/src/generated/errorCodes.ts', read('src/errors/errorCodes.ts'));
await updateClient();
updateParts('docs/configuration.md', { settings: settingRows(false), standard: settingRows(true) });
updateParts('.env.example', { settings: envEntries() });
updateParts('docs/faults.md', { answers: faultRows() });
if (values.check) await nameBreakingChanges();
if (problems.length > 0) console.error(problems.join('\n'));
process.exitCode = problems.length > 0 ? 1 : 0;

/** Writes the file or, with --check, names it, if it does not hold `text`. */
function update(path: string, text: string): void {
  if (read(path) === text) return;
  if (values.check) problems.push(`${path} is out of date: run \`npm run codegen\` and commit it.`);
  else writeFileSync(path, text);
}

/** The same for a page written by hand, but for what stands between `<!-- printed: NAME -->` and `<!-- end -->`. */
function updateParts(path: string, parts: Record<string, string[]>): void {
  let text = read(path);
  for (const [name, lines] of Object.entries(parts)) {
    const place = new RegExp(`(?<=<!-- printed: ${name} -->\\n\\n)[^]*?(?=\\n\\n(?:# )?<!-- end -->)`);
    if (!place.test(text)) throw new Error(`${path} has no place for "${name}".`);
    text = text.replace(place, () => lines.join('\n').trimEnd());
  }
  update(path, text);
}

/** For the tools of clients, such as Relay's compiler: without what is said to routers alone. */
function clientSdl(text: string): string {
  const forRouters = /^(_\w+|link__\w+|federation__\w+|CacheControlScope)$/;
  const forClients = /^(deprecated|oneOf|semanticNonNull|specifiedBy)$/;
  const document = visit(parse(text), {
    enter(node) {
      const name = 'name' in node ? (node.name?.value ?? '') : '';
      const isDirective = /^Directive(Definition)?$/.test(node.kind);
      const isDefinition = /^(Field|\w+Type)Definition$/.test(node.kind);
      const isRemoved = isDirective ? !forClients.test(name) : isDefinition && forRouters.test(name);
      return isRemoved || node.kind === 'SchemaExtension' ? null : undefined;
    },
  });
  return `${print(document)}\n`;
}

/** What codegen.yml says, without the command line of GraphQL Code Generator: it brings loaders of 60 MB that nobody here uses. */
async function updateClient(): Promise<void> {
  const { generates, documents, ...shared } = parseYaml(read('codegen.yml'), { merge: true });
  const pluginMap = { 'typescript-operations': typescriptOperations, 'typed-document-node': typedDocumentNode };
  for (const [filename, { plugins, config }] of Object.entries<{ plugins: string[]; config: object }>(generates)) {
    const text = await codegen({
      filename,
      schema: parse(clientSdl(sdl)),
      documents: [{ location: documents, document: parse(read(documents)) }],
      config: { ...config, importExtension: shared.importExtension },
      plugins: plugins.map((name) => ({ [name]: {} })),
      pluginMap: pluginMap as never,
    });
    update(filename, text);
  }
}

/** What the last release had deprecated may go; everything else that clients can use must stay. */
async function nameBreakingChanges(): Promise<void> {
  const schemaOf = (text: string) => buildASTSchema(parse(clientSdl(text)), { assumeValidSDL: true });
  const released = schemaOf(read('src/schema/released.graphql'));
  const changes = await diff(released, schemaOf(sdl), [DiffRule.suppressRemovalOfDeprecatedField]);
  for (const { criticality, message, path } of changes) {
    if (criticality.level !== CriticalityLevel.Breaking) continue;
    problems.push(`A client of the last release would break: ${message} (${path}). Keep it and deprecate it first.`);
  }
}

/** Rows of docs/configuration.md. A literal default is set as code; one described in words stays words. */
function settingRows(areStandard: boolean): string[] {
  const rows = table.flatMap(({ name, fallback, meaning, example, secret }) => {
    if (name in standardVariables !== areStandard) return [];
    const names = secret ? `${code(name)}<br>${code(`${name}_FILE`)}` : code(name);
    const preset = /\s|^none$/.test(fallback) ? escapeCell(fallback) : code(fallback);
    return `| ${names} | ${preset} | ${escapeCell(meaning)} | ${example ? code(example) : ''} |`;
  });
  return ['| Variable | Default | Meaning | Example |', '| --- | --- | --- | --- |', ...rows];
}

/** Entries of .env.example, each commented out: what a gateway for the real service needs. */
function envEntries(): string[] {
  const needed = /^(UPSTREAM_(BASE_URL|CLIENT_ID|CLIENT_SECRET)|AUTH_(ISSUER|AUDIENCE)|CACHE_URL|NODE_ENV)$/;
  return table.flatMap(({ name, fallback, meaning, example, secret }) => {
    if (!needed.test(name)) return [];
    const orFile = secret ? ` To read the value from a file, set ${name}_FILE to its path instead.` : '';
    return [`# ${meaning}`, `# Default: ${fallback}.${orFile}`, `# ${name}=${example}`, ''];
  });
}

/** The table of docs/faults.md. */
function faultRows(): string[] {
  const { operations, classes } = faultTable;
  const names = Object.keys(operations) as (keyof typeof operations)[];
  const word = (text: string) => (text === text.toUpperCase() ? code(text) : text);
  /** Faults with the same answers share a row. */
  const titles = new Map<string, string[]>();
  for (const { title, expect, sameKeyAgain, recovers } of classes) {
    const answers = names.map((name) => {
      const { code, calls, retryAfterSeconds } = expect[name];
      const again = errorCodes[code as ErrorCode]?.retryable ? ', again' : '';
      return `${word(code)}, ${calls === 'all tries' ? maxTries : calls}${again}${retryAfterSeconds ? ` after ${retryAfterSeconds} s` : ''}`;
    });
    const cells = [...answers, word(sameKeyAgain), recovers].join(' | ');
    titles.set(cells, [...(titles.get(cells) ?? []), title]);
  }
  const head = `| The service … | ${names.map(code).join(' | ')} | Same key later | Recovers |`;
  const rows = [...titles].map(([cells, same]) => `| ${same.join('; ')} | ${cells} |`);
  return [head, head.replace(/[^|]+/g, ' --- '), ...rows];
}

function code(text: string): string {
  return `\`${escapeCell(text)}\``;
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
