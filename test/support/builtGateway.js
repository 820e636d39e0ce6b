// Runs before all tests: builds dist/ from the present src/, for the tests that start the built gateway.
export { ensureBuilt as default } from '../../scripts/build.js';
