import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findCanaries } from '../../support/canaries.js';
import { environmentFor, linesWith, spawnGateway } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';

const canaries = { message: 'CanaryMessageP4qR7s', cause: 'CanaryCauseT2uV9w', property: 'CanaryPropertyX6yZ1a' };

/** What a bug may throw, by its name: loaded into the gateway, which has no such bug, and thrown on a signal. */
const bugs = `
const message = 'a record of ${canaries.message}\\n    at ${canaries.message} (/home/${canaries.message}.js:1:1)';
const error = () => Object.assign(new TypeError(message, { cause: new Error('${canaries.cause}') }), { record: '${canaries.property}' });
const bugs = {
  'an exception': function misreads() { throw error(); },
  'a drain that fails': () => {
    clearInterval = bugs['an exception'];
    process.kill(process.pid, 'SIGTERM');
  },
  'a text': () => { throw message; },
  'a rejection with an object': () => void Promise.reject({ message, toString: () => message }),
};
process.on('SIGWINCH', () => setImmediate(bugs[process.env.BUG]));
`;

const directory = scratch();
writeFileSync(join(directory, 'bugs.mjs'), bugs);
const sandbox = await startSandbox();

function start(bug: string) {
  const NODE_OPTIONS = `--import ${pathToFileURL(join(directory, 'bugs.mjs'))}`;
  return spawnGateway({ ...environmentFor(sandbox), NODE_OPTIONS, BUG: bug });
}

const frames = expect.arrayContaining([expect.stringMatching(/^at .*bugs\.mjs:\d+:\d+\)?$/)]);
const cause = { type: 'Error', frames };
const told: [string, object, string][] = [
  ['an exception', { type: 'TypeError', frames, cause }, 'uncaughtException'],
  ['a drain that fails', { type: 'TypeError', frames, cause }, 'unhandledRejection'],
  ['a text', { type: 'string' }, 'uncaughtException'],
  ['a rejection with an object', { code: 'ERR_UNHANDLED_REJECTION' }, 'unhandledRejection'],
];

it.each(told)(
  'A bug that nothing catches ends the process with one line that tells where it is and not what it says: %s',
  async (bug, err, origin) => {
    const running = await start(bug);
    running.signal('SIGWINCH');
    expect(await running.exited).toBe(1);
    const lastWords = linesWith([running.output()], { level: 'fatal' }); // all is JSON: nothing is printed beside the log
    expect(lastWords).toMatchObject([{ msg: 'the process ends: a bug of the gateway', origin, err }]);
    expect(findCanaries(running.output(), canaries)).toEqual([]);
    expect(JSON.stringify(lastWords)).not.toContain('/home/');
  },
);
