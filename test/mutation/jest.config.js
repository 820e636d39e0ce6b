import jest from '../../jest.config.js';

/** The room under test, see scripts/mutation.js. */
const room = process.env.MUTATION_ROOM;

/** They start processes, which run the built gateway: no mutant is in it. Or they wait for leases to run out. */
const slow = [
  ...[
    'boundedCache',
    'damagedStore',
    'deadHolders',
    'deadLeases',
    'lateWriters',
    'linksWithoutStore',
    'rotatedKeys',
    'sparing',
  ],
  ...['month', 'watchersOnFourProcesses', 'developerMode'],
];

export default {
  ...jest,
  rootDir: process.cwd(), // where Stryker has copied the project to
  testMatch: [`<rootDir>/test/${room}/**/*.test.ts`],
  testPathIgnorePatterns: [`/(${slow.join('|')})\\.test\\.ts$`],
  testSequencer: '@jest/test-sequencer',
  reporters: [],
};
