// Starts the sandbox of the service alone (npm run sandbox), building it first where needed. Arguments are its own:
// `npm run sandbox -- --help`.

import { ensureBuilt } from './build.js';
import { orSentence } from './orSentence.js';

await orSentence(ensureBuilt);
await import('../dist/sandbox/main.js');
