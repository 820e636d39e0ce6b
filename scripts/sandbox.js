// Starts the sandbox of the service alone (npm run sandbox), building it first where needed. Arguments are its own:
// `npm run sandbox -- --help`.

import { ensureBuilt, orExplain } from './build.js';

await orExplain(ensureBuilt);
await import('../dist/sandbox/main.js');
