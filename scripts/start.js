// Starts the gateway (npm start), building it first where the sources are newer than the build. The gateway then runs in
// this very process, so that signals, exit codes and arguments are its own.

import { fileURLToPath } from 'node:url';
import { ensureBuilt } from './build.js';
import { orSentence } from './orSentence.js';

await orSentence(ensureBuilt);

const main = new URL('../dist/main.js', import.meta.url);
// What the gateway sees, and what it starts further processes from, is its entry and not this script.
process.argv[1] = fileURLToPath(main);
await import(main.href);
