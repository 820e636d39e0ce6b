import { installIn } from '../../scripts/installIn.js';
import { needPrograms } from '../support/programs.js';
import setup from '../support/setup.js';

export default function nightlySetup() {
  needPrograms(['prometheus', 'promtool']);
  installIn('test/nightly');
  installIn('examples/supergraph');
  setup();
}
