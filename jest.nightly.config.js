import { shared, wholeRun } from './jest.config.js';

/** Campaigns, and what changes rarely: npm run test:nightly. */
export default {
  ...shared,
  ...wholeRun,
  testMatch: ['<rootDir>/test/nightly/**/*.test.ts'],
  globalSetup: '<rootDir>/test/nightly/setup.js',
};
