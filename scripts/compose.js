// Composes this subgraph with a small second one into a supergraph, as a router's owner would (part of npm run check): a
// schema that is valid alone can still fail there.

import { writeFile } from 'node:fs/promises';
import { composeSupergraph } from '../examples/supergraph/composeSupergraph.js';
import { orSentence } from './orSentence.js';
import { readArguments } from './readArguments.js';

const help = `Usage: node scripts/compose.js [file]

Composes the gateway and a small second subgraph into a supergraph, and writes it into the file.`;

const [out] = readArguments(help, { allowPositionals: true }).positionals;
await orSentence(async () => {
  const supergraph = composeSupergraph({
    taxpayersUrl: 'http://taxpayers.example/graphql',
    casesUrl: 'http://cases.example/graphql',
  });
  if (out) await writeFile(out, supergraph);
  console.log('Composed taxpayers and cases into a supergraph.');
});
