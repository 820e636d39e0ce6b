/** Tells how many tests passed and failed, as the last line. A file that could not run at all counts as one failure. */
export default class ClosingLineReporter {
  onRunComplete(_contexts, results) {
    const skipped = results.numPendingTests + results.numTodoTests;
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    if (skipped > 0) console.log(`${skipped} skipped`);
    console.log(`${results.numPassedTests} passed, ${failed} failed`);
  }
}
