import { startFleet } from '../../support/fleet.js';

it('Job statuses are shared for a second by the fleet while they can change, and for good once they cannot', async () => {
  const { sandbox, addTaxpayer, addJob, members, advance } = await startFleet({ size: 2 });
  const id = addTaxpayer();
  const job = addJob(id);
  const read = () => Promise.all(members.map(({ jobs }) => jobs.status(id, job)));
  await read();
  advance(999);
  await read();
  expect(sandbox.jobCalls(id, job)).toBe(1);
  advance(1);
  await read();
  expect(sandbox.jobCalls(id, job)).toBe(2);
  sandbox.updateJob(id, job, { status: 'completed' });
  advance(1000);
  expect((await read()).map(({ value: { job } }) => job.status)).toEqual(['completed', 'completed']);
  advance(20 * 24 * 3_600_000);
  await read();
  expect(sandbox.jobCalls(id, job)).toBe(3);
});
