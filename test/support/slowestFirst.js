// Runs the slowest test files first, so that no worker still runs one of them at the end. Jest itself starts with the largest
// files, but the slowest are small: they start whole fleets of processes.

import Sequencer from '@jest/test-sequencer';

const slowest = ['faultTable', 'process', 'damagedStore', 'stalledLogReader', 'canary', 'watchersOnFourProcesses'];

export default class SlowestFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const first = slowest.flatMap((name) => sorted.filter(({ path }) => path.endsWith(`/${name}.test.ts`)));
    return [...new Set([...first, ...sorted])];
  }
}
