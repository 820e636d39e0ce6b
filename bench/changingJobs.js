// Jobs that change every second, each asked for once a second, evenly: hardly any status is a cache hit.

import { measure } from './measure.js';
import { newJobs, readers } from './production.js';
import { jobStatus } from './queries.js';
import { table } from './report.js';
import { byReaders, openCells, openColumns } from './tail.js';

const connections = 64;
const callers = 16;

/** Prints and returns the table. */
export async function changingJobs(targets, world) {
  const authorizations = await readers(world.issuer, callers);
  const rows = [];
  for (const count of world.quick ? [100, 400] : [1000, 10_000]) {
    const jobs = await newJobs(world.service, count, 5);
    const asked = jobs.map((job) => ({ query: jobStatus, variables: job }));
    const bodies = byReaders(authorizations, asked);
    const load = { ...world, bodies, connections };
    const stop = keepMoving(world.service);
    for (const target of targets) {
      await measure(target, { ...load, amount: Math.ceil(count / connections) * connections });
      const result = await measure(target, { ...load, seconds: world.rounds * world.seconds, perSecond: count });
      rows.push([count, target.name, ...openCells(result)]);
    }
    await stop();
  }
  const text = `**Jobs that change every second, each asked for once a second** (\`changing-jobs\`)\n\n${table(['jobs', 'target', ...openColumns], rows)}`;
  process.stdout.write(`\n${text}`);
  return text;
}

/** Makes the service report every job as waiting, a second later as processing, and so on. @returns a function that ends it */
export function keepMoving({ control }) {
  let armed;
  const move = async () => {
    if (armed === undefined) {
      const fault = { set: { status: 'waiting' } };
      armed = await control('arm', { endpoint: 'refreshJob', fault });
    } else {
      await control('disarm', armed);
      armed = undefined;
    }
  };
  let moving = move();
  const timer = setInterval(() => {
    moving = moving.then(move);
  }, 1000);
  return async () => {
    clearInterval(timer);
    await moving;
    if (armed !== undefined) await move();
  };
}
