// Composes this subgraph with a small second one into a supergraph, as a router's owner would (part of npm run check): a
// schema that is valid alone can still fail there. `node scripts/compose.js <file>` also writes the supergraph.

import { writeFile } from 'node:fs/promises';
import { composeSupergraph } from '../examples/supergraph/composeSupergraph.js';
import { orSentence } from './committedFile.js';

await orSentence(async () => {
  const supergraph = composeSupergraph({
    taxpayersUrl: 'http://taxpayers.example/graphql',
    casesUrl: 'http://cases.example/graphql',
  });
  const out = process.argv[2];
  if (out) await writeFile(out, supergraph);
  console.log('Composed taxpayers and cases into a supergraph.');
});
