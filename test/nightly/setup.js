import { execFileSync } from 'node:child_process';
import { needPrograms } from '../support/programs.js';
import setup from '../support/setup.js';

export default function nightlySetup() {
  needPrograms(['prometheus', 'promtool']);
  for (const folder of ['test/nightly', 'examples/supergraph']) {
    execFileSync('npm', ['run', '--silent', 'install:in', folder], { stdio: ['ignore', 2, 2] });
  }
  setup();
}
