// Growth of watchers of jobs in one process: the gateway's own watcher, over jobs that change with every poll.

import { jobWatcher } from '../../src/datasources/jobWatcher.ts';
import { bytesEach, round, table } from '../report.js';

const watchersOfAJob = 10;
const changes = 5;

export async function watcherGrowth(sizes) {
  await watched(100); // warms up the compiler
  const rows = [];
  for (const size of sizes) rows.push(await watched(size));
  return table(['watchers', 'jobs', 'bytes each', 'polls per job and change', 'CPU µs/watcher and change'], rows);
}

async function watched(size) {
  const jobs = size / watchersOfAJob;
  let polls = 0;
  const service = {
    held: () => undefined,
    async status(taxpayerId, jobId) {
      polls += 1;
      const now = Date.now();
      return { job: { taxpayerId, jobId, name: 'job', status: `s${polls}` }, observedAt: now, unchangedSince: now };
    },
  };
  const watcher = jobWatcher({
    jobs: service,
    pollMinMs: 200,
    pollMaxMs: 200,
    watchMaxMs: 3_600_000,
    onWatchers: () => {},
  });
  const before = heapBytes();
  const cpuBefore = process.cpuUsage();
  const watches = Array.from({ length: size }, (_, n) => watcher.watch(['taxpayer', `job-${n % jobs}`]));
  const reading = watches.map(async (watch) => {
    for (let seen = 0; seen < changes; seen += 1) await watch.next();
  });
  await Promise.all(reading);
  const { user, system } = process.cpuUsage(cpuBefore);
  const bytes = (heapBytes() - before) / size;
  watcher.stop();
  return [
    size,
    jobs,
    bytesEach(bytes, size),
    (polls / jobs / changes).toFixed(2),
    round((user + system) / size / changes),
  ];
}

function heapBytes() {
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
