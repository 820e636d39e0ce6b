/** What every project runs with. */
export const shared = {
  rootDir: import.meta.dirname,
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  globalSetup: '<rootDir>/test/support/setup.js',
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
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
  reporters: ['default', '<rootDir>/test/support/closingLineReporter.js'],
  testTimeout: 120_000,
  // What a worker keeps of the modules of earlier tests is only let go with the worker.
  workerIdleMemoryLimit: '1.5GB',
  maxWorkers: 2,
};

export default {
  ...shared,
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/nightly/'],
  testSequencer: '<rootDir>/test/support/slowestFirst.js',
};
