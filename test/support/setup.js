import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { needPrograms } from './programs.js';

/** Before the tests that start programs: builds the gateway and the typed client, and looks for the programs. */
export default function setup() {
  needPrograms(['redis-server', 'redis-cli', 'chromium']);
  const env = { ...process.env, NODE_OPTIONS: '' };
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: resolve(import.meta.dirname, '../..'),
    env,
    stdio: ['ignore', 2, 2],
  });
}
