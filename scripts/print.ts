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
import { errorCodes } from '../src/errors/errors.js';
import { resolvers } from '../src/resolvers/index.js';
import { buildSchema } from '../src/schema/buildSchema.js';
import { defaultProviders } from '../src/schema/Provider.js';
import { envEntries, faultRows, settingRows, withPrinted } from './printedTables.js';

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
const sdl = await subgraphSdl();
const table = Object.entries(settings).map(([name, setting]) => ({ name, ...setting }));
const [own, standard] = [false, true].map((is) => table.filter(({ name }) => name in standardVariables === is));
const problems: string[] = [];

keep('src/schema/schema.graphql', sdl);
keep('packages/client/schema.graphql', clientSdl(sdl));
keep('packages/client/src/errorCodes.ts', read('src/errors/errorCodes.ts'));
await keepGenerated();
keepPrinted('docs/configuration.md', { settings: settingRows(own), standard: settingRows(standard) });
keepPrinted('.env.example', { settings: envEntries(table) });
keepPrinted('docs/faults.md', { answers: faultRows(JSON.parse(read('test/gateway/faults/faultTable.json')), errorCodes) });
if (values.check) await nameBreakingChanges();
if (problems.length > 0) console.error(problems.join('\n'));
process.exitCode = problems.length > 0 ? 1 : 0;

function keep(path: string, text: string): void {
  if (read(path) === text) return;
  if (values.check) problems.push(`${path} is out of date: run \`npm run codegen\` and commit it.`);
  else writeFileSync(path, text);
}

/** A page written by hand, in which only tables are printed. */
function keepPrinted(path: string, parts: Record<string, string[]>): void {
  keep(path, withPrinted(read(path), parts));
}

/** The SDL as a router reads it from `_service`. */
async function subgraphSdl(): Promise<string> {
  const schema = buildSchema({ resolvers, providers: defaultProviders });
  const { data } = await graphql({ schema, source: '{ _service { sdl } }', contextValue: {} });
  return `${(data as { _service: { sdl: string } })._service.sdl.trim()}\n`;
}

/** For the tools of clients, such as Relay's compiler: without what is said to routers alone. */
function clientSdl(text: string): string {
  const forClients = new Set(['deprecated', 'oneOf', 'semanticNonNull', 'specifiedBy']);
  const unlessForRouters = ({ name }: { name: { value: string } }) =>
    /^(_\w+|link__\w+|federation__\w+|CacheControlScope)$/.test(name.value) ? null : undefined;
  const ifForClients = ({ name }: { name: { value: string } }) => (forClients.has(name.value) ? undefined : null);
  const document = visit(parse(text), {
    Directive: ifForClients,
    DirectiveDefinition: ifForClients,
    SchemaExtension: () => null,
    FieldDefinition: unlessForRouters,
    EnumTypeDefinition: unlessForRouters,
    ScalarTypeDefinition: unlessForRouters,
    ObjectTypeDefinition: unlessForRouters,
    UnionTypeDefinition: unlessForRouters,
  });
  return `${print(document)}\n`;
}

/** What codegen.yml says, without the command line of GraphQL Code Generator: it brings loaders of 60 MB that nobody here uses. */
async function keepGenerated(): Promise<void> {
  const { generates, documents, ...shared } = parseYaml(read('codegen.yml'), { merge: true });
  const plugins = { 'typescript-operations': typescriptOperations, 'typed-document-node': typedDocumentNode };
  for (const [filename, { plugins: names, config }] of Object.entries<{ plugins: string[]; config: object }>(
    generates,
  )) {
    const text = await codegen({
      filename,
      schema: parse(clientSdl(sdl)),
      documents: [{ location: documents, document: parse(read(documents)) }],
      config: { ...config, importExtension: shared.importExtension },
      plugins: names.map((name) => ({ [name]: {} })),
      pluginMap: plugins as never,
    });
    keep(filename, text);
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

function read(path: string): string {
  return readFileSync(path, 'utf8');
}
