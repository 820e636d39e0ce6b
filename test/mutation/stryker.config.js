/** The room under test, see scripts/mutation.js. */
const room = process.env.MUTATION_ROOM;

export default {
  mutate: [`src/${room}/**/*.ts`],
  testRunner: 'seedsThenJest',
  plugins: ['./test/mutation/seedsThenJest.js'],
  jest: { projectType: 'custom', configFile: 'test/mutation/jest.config.js', enableFindRelatedTests: false },
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  coverageAnalysis: 'perTest',
  ignoreStatic: true, // what only runs when a module is loaded would need every test again
  disableTypeChecks: false, // swc looks at no types
  tsconfigFile: 'none', // Stryker rewrites paths in it with an API that TypeScript 7 no longer has
  timeoutMS: 40_000, // a busy machine must not be taken for a mutant that never ends
  timeoutFactor: 2,
  concurrency: Number(process.env.MUTATION_CONCURRENCY),
  ignorePatterns: ['docs', 'ops', '.build'],
  tempDirName: '.build/mutation',
  cleanTempDir: 'always',
  reporters: ['clear-text', 'json', 'progress-append-only'],
  jsonReporter: { fileName: `test-artifacts/mutation/${room}.json` },
  clearTextReporter: { logTests: false, reportTests: false, reportScoreTable: false },
  incremental: true,
  incrementalFile: `test-artifacts/mutation/${room}.incremental.json`,
};
