// Runs the tests (npm test) against the real gateway, a real Redis and a real browser; whatever is missing is installed or
// named, so that nothing is skipped silently.

import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { ensureBuilt } from './build.js';
import { orSentence } from './orSentence.js';
import { providePackages } from './providePackages.js';
import { killGroup } from './run.js';
import { provideTools } from './systemTools.js';

const help = `Usage: npm test -- [test files or folders] [options of Jest]

Runs every test, or those that are named. The last line is always \`N passed, N failed\`.

  npm test -- test/config/config.test.ts -t "names the variable"`;

const jest = fileURLToPath(new URL('bin/jest.js', import.meta.resolve('jest/package.json')));

/** What some tests import or start; a single test provides its own. Before Jest begins, which remembers what is not there. */
const packagesOfTests = [
  ...['test/bench', 'test/client', 'test/identity', 'test/manifests', 'test/supergraph'],
  ...['examples/supergraph/hive', 'examples/supergraph/cosmo', 'examples/supergraph/grafbase'],
  'examples/decision-point/cerbos',
];

const args = process.argv.slice(2);
if (args.includes('--help') || args.includes('-h')) {
  console.log(help);
  process.exit();
}
const toolPaths = await orSentence(provideTools);
await orSentence(ensureBuilt);
if (args.length === 0) await orSentence(provideAllPackages);
const { code, counts } = await runJest(withWorkers(args), toolPaths);
if (counts.skipped > 0) console.log(`${counts.skipped} skipped`);
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = code === 0 && counts.passed > 0 && counts.failed === 0 ? 0 : 1;

async function provideAllPackages() {
  for (const folder of packagesOfTests) await providePackages(folder);
}

/** Tests start servers and browsers of their own, so more workers than a few only slow each other down. */
function withWorkers(args) {
  if (args.some((arg) => /^(-i|-w|--runInBand|--maxWorkers)/.test(arg))) return args;
  return [`--maxWorkers=${Math.min(4, availableParallelism())}`, ...args];
}

/** The counts come from test/support/closingLineReporter.js; none come when Jest found no test to run. */
function runJest(args, env) {
  const nodeOptions = [process.env.NODE_OPTIONS, '--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const child = fork(jest, args, {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, ...env, NODE_OPTIONS: nodeOptions.filter(Boolean).join(' ') },
    detached: true, // so that a signal to the group reaches Jest's workers as well
  });
  let counts = { passed: 0, failed: 0, skipped: 0 };
  child.on('message', (message) => {
    if (message?.testCounts) counts = message.testCounts;
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => killGroup(child, signal));
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, counts })));
}
