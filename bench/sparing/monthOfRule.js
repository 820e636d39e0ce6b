// Simulates a month of some of an office's taxpayers with one freshness rule, in virtual time: a process of its own.

import { Sealer } from '../../src/cache/sealing.ts';
import { loadConfig } from '../../src/config/config.ts';
import { Secret } from '../../src/config/secret.ts';
import { identifierReader } from '../../src/datasources/identifiers.ts';
import { createLogger } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/Metrics.ts';
import { wireServices } from '../../src/services.ts';
import { LocalStore } from '../../src/stores/LocalStore.ts';
import { seeded } from '../../test/support/seeded.js';
import { VirtualTime } from '../../test/support/VirtualTime.js';
import { Lags } from './Lags.js';
import { day, hour, isOfficeTime, lifeCycles, minute, monthBegins, SimulatedService } from './lifeCycles.js';
import { caseWorker, dashboards, jobReader, recordWatcher } from './readers.js';

const processes = 4;
const { seed, taxpayers, days, settings, part, parts } = JSON.parse(process.argv[2]);
const end = monthBegins + days * day;
const outage = { from: monthBegins + 2 * day + 10 * hour, until: monthBegins + 2 * day + 10.5 * hour };

/** A gateway that reads a record for the first time knows only its `created_at`: enough for states of over 10 days. */
const knownFrom = monthBegins - 10 * day;

const time = new VirtualTime(knownFrom);
const cycles = lifeCycles({ taxpayers, days, random: seeded(seed) }).filter((_, n) => n % parts === part);
const random = seeded(seed + 1 + part);
time.install({ random });
const service = new SimulatedService({ cycles, days, time, outage });
const office = openOffice();
for (let at = knownFrom; at < monthBegins; at += hour) time.at(at, isOfficeTime(at) ? lookAtAll : () => false);
for (let n = 0; n < cycles.length; n += 1) live(n);
dashboards(office);
for (let at = monthBegins + day + 12.5 * hour; at < end; at += 3.5 * day) deploy(at);
await time.runUntil(end);
const { lags, jobLags, count } = office;
const result = {
  count,
  tokenCallsPerHour: service.tokenCallsPerHour,
  refusedPerHour: office.refusedPerHour,
  changes: lags.shown,
  steps: lags.steps,
  jobEnds: jobLags.shown,
};
process.stdout.write(JSON.stringify(result));

function openOffice() {
  const store = new LocalStore();
  const onTokenEvent = (event) => {
    if (!event.endsWith('-exhausted') || time.now < monthBegins) return;
    office.refusedPerHour[Math.floor((time.now - monthBegins) / hour)] += 1;
  };
  const metrics = Object.assign(new Metrics(), { onTokenEvent });
  const shared = { store, metrics, log: createLogger('silent', { write: () => {} }) };
  const start = () => startProcess(shared);
  const office = {
    time,
    end,
    cycles,
    ids: cycles.map(({ id }) => identifierReader(256).taxpayerId(id)),
    start,
    members: Array.from({ length: processes }, start),
    refusedPerHour: new Array(24 * days).fill(0),
    /** The process that answers the next request. */
    member: () => office.members[Math.floor(random() * processes)],
    lags: new Lags(),
    jobLags: new Lags(),
    count: { looks: 0, stale: 0, failed: 0 },
    /** The answer of `read`; undefined when the gateway answers with an error. */
    async attempt(read) {
      try {
        return await read();
      } catch (error) {
        if (error.code === undefined) throw error;
        return undefined;
      }
    },
    async look(member, n, holder) {
      const view = await office.attempt(() => member.broker.record(office.ids[n], Infinity, { holder }));
      if (view === undefined) office.count.failed += 1;
      if (view?.stale) office.count.stale += 1;
      if (view) office.saw(n, view);
      if (view) office.lags.hid(n, view.stale ? Infinity : time.now + member.broker.freshForMs(view));
      return view;
    },
    saw(n, { record: { status } }) {
      office.lags.saw(n, status, time.now);
      if (status === 'CONSENT_RECEIVED') attend(n);
    },
  };
  return office;
}

/** Reads all records, before the month: the gateway then knows its taxpayers when the month begins. Not counted. */
function lookAtAll() {
  for (const [n, { createdAt }] of cycles.entries()) {
    if (createdAt <= time.now) void office.attempt(() => office.member().broker.record(office.ids[n]));
  }
}

/** Schedules the events of taxpayer `n`, and the readers that follow from them. */
function live(n) {
  const { createdAt, statuses, jobs } = cycles[n];
  office.lags.add();
  statuses.slice(1).forEach(({ at, status: state, isSigning }, index) => {
    if (at >= monthBegins) schedule(office.lags, n, { at, state, isSigning, before: statuses[index].at });
  });
  const signsAt = statuses[1]?.isSigning ? createdAt : statuses[1]?.at;
  if (signsAt === createdAt && createdAt >= monthBegins) attend(n, createdAt);
  if (n % 40 === 0) watchFrom(Math.max(createdAt, monthBegins), n, end);
  else if (n % 2 === 0 && signsAt >= monthBegins) watchFrom(signsAt, n, signsAt + 30 * minute);
  for (const [index, job] of jobs.entries()) if (job.startsAt >= monthBegins) follow(n, job, index % 3 !== 0);
}

/** Starts the one case worker who attends to a client that is signing. */
function attend(n, from = time.now) {
  if (cycles[n].isAttended || !isOfficeTime(from)) return;
  cycles[n].isAttended = true;
  caseWorker(office, n, from);
}

function watchFrom(at, n, until) {
  time.at(at, () => void recordWatcher(office, n, Math.min(until, end)));
}

function follow(n, job, isWatcher) {
  const { startsAt, endsAt, endsAs } = job;
  const thing = office.jobLags.add();
  schedule(office.jobLags, thing, { at: endsAt, before: startsAt, state: endsAs });
  time.at(startsAt, () => void jobReader(office, n, job, thing, isWatcher));
}

function schedule(lags, thing, change) {
  time.at(change.at, () => {
    lags.happened(thing, change);
    return false;
  });
}

/** Replaces all processes, one per minute. */
function deploy(at) {
  for (let n = 0; n < processes; n += 1) {
    time.at(at + n * minute, () => {
      const old = office.members[n];
      office.members[n] = office.start();
      old.stop();
    });
  }
}

function startProcess({ store, metrics, log }) {
  const clientSecret = new Secret('month-secret');
  return wireServices({
    config: loadConfig({
      UPSTREAM_BASE_URL: 'http://service.invalid',
      UPSTREAM_CLIENT_ID: 'month',
      UPSTREAM_CLIENT_SECRET: 'month-secret',
      AUTH_MODE: 'disabled',
      TOKEN_BUDGET_PER_HOUR: '0',
      ...settings,
    }),
    log,
    metrics,
    store,
    sealer: new Sealer([{ from: 'client-secret', secret: clientSecret }]),
    baseUrl: 'http://service.invalid',
    credentials: () => ({ clientId: 'month', clientSecret }),
    fetch: service.fetch,
  });
}
