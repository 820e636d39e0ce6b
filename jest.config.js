// Not UTC: a time that is taken for local by mistake differs.
process.env.TZ = 'America/New_York';

/** What every project runs with. */
export const shared = {
  rootDir: import.meta.dirname,
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
        },
        module: { type: 'es6' },
      },
    ],
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/test-artifacts/'],
};

/** What holds for a whole run. Jest takes none of it from a single project. */
export const wholeRun = {
  testTimeout: 120_000,
  reporters: ['default', '<rootDir>/test/support/closingLineReporter.js'],
  // What a worker keeps of the modules of earlier tests is only let go with the worker.
  workerIdleMemoryLimit: '1.5GB',
  maxWorkers: 3,
};

/** One project: `npm test -- --selectProjects unit`. CONTRIBUTING.md says what each needs. */
export default {
  ...wholeRun,
  testSequencer: '<rootDir>/test/support/slowestFirst.js',
  projects: [
    { ...shared, displayName: 'unit', testMatch: ['<rootDir>/test/unit/**/*.test.ts'] },
    { ...shared, displayName: 'gateway', testMatch: ['<rootDir>/test/gateway/**/*.test.ts'] },
    {
      ...shared,
      displayName: 'fleet',
      testMatch: ['<rootDir>/test/{fleet,simulation}/**/*.test.ts'],
      globalSetup: '<rootDir>/test/support/setup.js',
    },
  ],
};
