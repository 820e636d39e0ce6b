// Starts the example decision point (node examples/decision-point/start.js).

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startDecisionPoint } from './decisionPoint.js';

const usage = `Serves an OpenID AuthZEN decision point on loopback that decides by lists in a file.

  node examples/decision-point/start.js [options]

  --lists <file>    { "<subject>": ["<taxpayer id>"] }, read for each call (examples/decision-point/lists.json)
  --port <number>   4180
  --help            this text

DECISION_TOKEN, when set, is the bearer token that the gateway has to present.
`;

const { values } = parseArgs({
  options: {
    lists: { type: 'string', default: fileURLToPath(new URL('lists.json', import.meta.url)) },
    port: { type: 'string', default: '4180' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) process.stdout.write(usage);
else {
  const token = process.env.DECISION_TOKEN || undefined;
  const { url } = await startDecisionPoint({ listsFile: values.lists, port: Number(values.port), token });
  console.log(`AUTH_DECISION_URL=${url}`);
}
