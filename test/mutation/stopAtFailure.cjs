const { TestEnvironment } = require('jest-environment-node');

/** After the first test that fails, the others of its file are skipped: one is enough to notice a mutant. */
module.exports = class StopAtFailure extends TestEnvironment {
  #hasFailed = false;

  handleTestEvent({ name, test }) {
    if (name === 'test_start' && this.#hasFailed) test.mode = 'skip';
    if (name === 'test_done' && test.errors.length > 0) this.#hasFailed = true;
  }
};
