// Before any test: those that start a gateway of their own start what src/ says now.
export { ensureBuilt as default } from '../../scripts/build.js';
