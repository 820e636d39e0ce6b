import { shared, wholeRun } from './jest.config.js';

/** Campaigns, and what changes rarely: npm run test:nightly. */
export default {
  ...shared,
  ...wholeRun,
  maxWorkers: 2, // some compare times
  testMatch: ['<rootDir>/test/nightly/**/*.test.ts'],
  globalSetup: '<rootDir>/test/nightly/setup.js',
};
