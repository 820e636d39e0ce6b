/**
 * Tells how many tests passed and failed, once, at the end: to scripts/test.js, which prints it as its last line, or on
 * stdout where Jest was started by hand. A file that could not run at all counts as one failure.
 */
export default class ClosingLineReporter {
  onRunComplete(_contexts, results) {
    const testCounts = {
      passed: results.numPassedTests,
      failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
      skipped: results.numPendingTests + results.numTodoTests,
    };
    if (process.send) process.send({ testCounts });
    else console.log(`${testCounts.passed} passed, ${testCounts.failed} failed`);
  }
}
