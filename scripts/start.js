// Starts the gateway (npm start), building it first where the sources are newer than the build. The gateway then runs in
// this very process, so that signals, exit codes and arguments are its own. A package without src/ is started as it is.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

if (existsSync(new URL('../src', import.meta.url))) {
  const { ensureBuilt, orExplain } = await import('./build.js');
  await orExplain(ensureBuilt);
}

const main = new URL('../dist/main.js', import.meta.url);
// What the gateway sees, and what it starts further processes from, is its entry and not this script.
process.argv[1] = fileURLToPath(main);
await import(main.href);
