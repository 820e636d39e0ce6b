// Keeps the committed schemas. `schema.graphql` is what the code of this commit serves, as a subgraph; it is reviewed
// with every change. `released.graphql` is what clients of the last release were promised. The typed client has its own copy
// of the error codes.
//
// A file is compared, and not a git tag, because a shallow clone has neither tags nor history.

import { copyFile, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { CriticalityLevel, DiffRule, diff } from '@graphql-inspector/core';
import { buildASTSchema, graphql, parse } from 'graphql';
import { ensureBuilt } from './build.js';
import { keepInSync } from './committedFile.js';
import { orSentence } from './orSentence.js';
import { readArguments } from './readArguments.js';

const help = `Usage: node scripts/schema.js [--check | --breaking | --release]

Writes schema.graphql from the build, and the error codes of the typed client (npm run codegen).

  --check      only compares, and fails where they differ
  --breaking   fails when a client of the last release could break
  --release    makes schema.graphql the released one (npm run schema:release)`;

const current = 'src/schema/schema.graphql';
const released = 'src/schema/released.graphql';

const flag = { type: 'boolean', default: false };
const { values } = readArguments(help, { options: { check: flag, breaking: flag, release: flag } });
await orSentence(async () => {
  if (values.breaking) await failOnBreakingChanges();
  else if (values.release) await copyFile(inRoot(current), inRoot(released));
  else await syncWithBuild(values.check);
});

async function syncWithBuild(check) {
  await ensureBuilt();
  const options = { check, command: 'npm run codegen' };
  await keepInSync(current, `${(await subgraphSdl()).trim()}\n`, options);
  const codes = await readFile(inRoot('src/errors/errorCodes.ts'), 'utf8');
  await keepInSync('packages/client/src/errorCodes.ts', codes, options);
}

/** The SDL as a router reads it from `_service`. */
async function subgraphSdl() {
  const [{ resolvers }, { buildSchema }, { defaultProviders }] = await Promise.all([
    import('../dist/resolvers/index.js'),
    import('../dist/schema/buildSchema.js'),
    import('../dist/schema/Provider.js'),
  ]);
  const schema = buildSchema({ resolvers, providers: defaultProviders });
  const { data } = await graphql({ schema, source: '{ _service { sdl } }', contextValue: {} });
  return data._service.sdl;
}

/** What the last release had deprecated may go; everything else that clients can use must stay. */
async function failOnBreakingChanges() {
  const changes = await diff(await readSchema(released), await readSchema(current), [
    DiffRule.suppressRemovalOfDeprecatedField,
  ]);
  const breaking = changes.filter((change) => change.criticality.level === CriticalityLevel.Breaking);
  if (breaking.length === 0) return;
  const lines = breaking.map((change) => `- ${change.message} (${change.path ?? 'schema'})`);
  throw new Error(
    `Clients of the last release would break:\n${lines.join('\n')}\nKeep what they use and deprecate it first.`,
  );
}

async function readSchema(path) {
  const sdl = await readFile(inRoot(path), 'utf8').catch((error) => {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(
      `${path} is missing: run \`npm run codegen\`, then \`npm run schema:release\` at the first release.`,
    );
  });
  // Federation's own directives come by @link and are not defined in the SDL.
  return buildASTSchema(parse(sdl), { assumeValidSDL: true });
}

function inRoot(path) {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}
