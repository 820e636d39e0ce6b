// Composes this subgraph with a small second one into a supergraph, as a router's owner would (part of CI): a schema that
// is valid alone can still fail there. `node scripts/compose.js <file>` also writes the supergraph.

import { readFile, writeFile } from 'node:fs/promises';
import { composeServices } from '@theguild/federation-composition';
import { parse } from 'graphql';
import { orSentence } from './committedFile.js';

await orSentence(async () => {
  const subgraphs = await Promise.all([
    subgraph('taxpayers', '../src/schema/schema.graphql'),
    subgraph('cases', '../examples/supergraph/cases.graphql'),
  ]);
  const { errors, supergraphSdl } = composeServices(subgraphs);
  if (errors) throw new Error(errors.map((error) => error.message).join('\n'));
  const out = process.argv[2];
  if (out) await writeFile(out, supergraphSdl);
  console.log(`Composed ${subgraphs.map(({ name }) => name).join(' and ')} into a supergraph.`);
});

async function subgraph(name, path) {
  const sdl = await readFile(new URL(path, import.meta.url), 'utf8');
  return { name, typeDefs: parse(sdl), url: `http://${name}.example/graphql` };
}
