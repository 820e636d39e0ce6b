// Runs the tests on another Node.js (npm run test:node). The tests find it first on their PATH, and so do those they start.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { orSentence } from './orSentence.js';
import { provideNode, withNode } from './provideNode.js';
import { runInPlace } from './run.js';

const help = `Usage: npm run test:node -- <version> [test files or folders] [options of Jest]

Runs every test, or those that are named, on this version of Node.js: the newest 24 for 24, or exactly 24.9.0.
The runtime comes from npm, once, into .build/node. Delete its folder there for a newer one.

  npm run test:node -- 24
  npm run test:node -- 26 test/stores test/live/webSocket.test.ts`;

const [version, ...rest] = process.argv.slice(2);
if (version === '--help' || version === '-h') console.log(help);
else await orSentence(test);

async function test() {
  const bin = await provideNode(version);
  const args = rest[0] === '--' ? rest.slice(1) : rest;
  await runInPlace(join(bin, 'node'), [fileURLToPath(new URL('test.js', import.meta.url)), ...args], withNode(bin));
}
