// The readers in the simulated month: dashboards, case workers, and watchers of records and jobs.

import { isOfficeTime, minute, monthBegins } from './lifeCycles.js';

const second = 1000;

/** Two dashboards, each of which shows every taxpayer and refreshes each once a minute in office hours. */
export function dashboards(office) {
  const { time, cycles, lags, members } = office;
  const batches = 60;
  const refresh = (process, batch) => {
    time.at(time.now + minute, () => refresh(process, batch));
    if (!isOfficeTime(time.now)) return false;
    for (let n = batch; n < cycles.length; n += batches) {
      if (cycles[n].createdAt > time.now) continue;
      office.count.looks += 1;
      lags.looked(n, time.now);
      void office.look(members[process], n, `dashboard-${process}`);
    }
  };
  for (let process = 0; process < 2; process += 1) {
    const startsAt = monthBegins + 137 + process * 29_400;
    for (let batch = 0; batch < batches; batch += 1) {
      time.at(startsAt + batch * second, () => refresh(process, batch));
    }
  }
}

/** Looks every 15 s while a client is signing: from `from` until the form is submitted, half an hour at most. */
export function caseWorker(office, n, from) {
  const { time, lags } = office;
  const endsAt = from + 30 * minute;
  const look = async () => {
    office.count.looks += 1;
    lags.looked(n, time.now);
    const view = await office.look(office.member(), n, `case-worker-${n % 10}`);
    const isSigning = !view || ['CREATED', 'CONSENT_RECEIVED'].includes(view.record.status);
    if (isSigning && time.now < endsAt) time.at(time.now + 15 * second, look);
  };
  time.at(from, look);
}

/** Subscribes to a taxpayer's record until `until` or a final status, and again when it loses its process. */
export async function recordWatcher(office, n, until) {
  const { time, lags, ids } = office;
  const holder = `watcher-${n}`;
  lags.watched(n, 1);
  while (time.now < until) {
    for await (const view of office.member().recordWatches.watch(ids[n], { maxMs: until - time.now, holder })) {
      office.saw(n, view);
      if (isFinal(view)) return lags.watched(n, -1);
    }
  }
  lags.watched(n, -1);
}

/** Follows a refresh job until it has ended: by subscription, or by a query every 10 s. */
export async function jobReader(office, n, job, thing, isWatcher) {
  const { time, jobLags, ids, end } = office;
  const seen = ({ job: { status } }) => {
    jobLags.saw(thing, status, time.now);
    return status !== 'processing';
  };
  if (!isWatcher) {
    const look = async () => {
      office.count.looks += 1;
      jobLags.looked(thing, time.now);
      const view = await office.attempt(() => office.member().jobs.status(ids[n], job.id));
      if ((!view || !seen(view)) && time.now < end) time.at(time.now + 10 * second, look);
    };
    return look();
  }
  jobLags.watched(thing, 1);
  for (let isOver = false; !isOver && time.now < end; ) {
    for await (const view of office.member().jobWatches.watch([ids[n], job.id])) isOver = seen(view);
  }
  jobLags.watched(thing, -1);
}

const isFinal = ({ record: { status } }) => status === 'REJECTED' || status === 'COMPLETED';
