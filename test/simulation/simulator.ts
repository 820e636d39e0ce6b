export { planOf } from './plan.js';
export { run } from './runSeed.js';
