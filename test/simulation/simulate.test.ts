import { run } from '../support/run.js';

/** What `npm run simulate` prints. Rejects with it when a seed failed. */
async function simulate(...args: readonly string[]) {
  const command = ['--import', 'tsx', 'test/simulation/main.ts', ...args];
  return (await run(process.execPath, command, { maxBuffer: 1e8 })).stdout;
}

it('The simulated fleet keeps its promises for the same seeds at every run, and for those that have failed before', async () => {
  expect(await simulate('--from', '1', '--seeds', '300')).toMatch(/^300 ran, 0 failed/);
  expect(await simulate('--failed')).toMatch(/^[1-9]\d* ran, 0 failed/);
}, 300_000);
