// The events in the lives of a tax office's taxpayers during a month, and the service that reports them.

import { randomUUID } from 'node:crypto';
import { around } from '../../test/support/seeded.js';

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;
/** A Monday. */
export const monthBegins = Date.UTC(2026, 5, 1);

export const isOfficeTime = (time) => isBetween(time, 9, 17) && new Date(time).getUTCDay() % 6 !== 0;
const isBetween = (time, from, to) => time % day >= from * hour && time % day < to * hour;
/** `time` if it `isFit`, else a random time in the hour from `from` o'clock on the next day that fits. */
const movedTo = (isFit, from, time, random) => {
  let moved = time;
  while (!isFit(moved)) moved = moved - (moved % day) + day + (from + random()) * hour;
  return moved;
};
const inOffice = (time, random) => movedTo(isOfficeTime, 9, time, random);
const whenAwake = (time, random) => movedTo((at) => isBetween(at, 8, 22), 8, time, random);

/** The taxpayers' events. They became clients evenly over four months, the last of which is the simulated month. */
export function lifeCycles({ taxpayers, days, random }) {
  const monthEnds = monthBegins + days * day;
  return Array.from({ length: taxpayers }, () => {
    const createdAt = inOffice(monthEnds - 120 * day * random(), random);
    const statuses = statusesOf(createdAt, random);
    const times = { statuses, rotations: rotations(createdAt, monthEnds, random) };
    return { id: randomUUID(), createdAt, ...times, jobs: jobsOf(statuses, monthEnds, random) };
  });
}

/** Each status with its time. `isSigning`: a person is filling in the hosted flow. */
function statusesOf(createdAt, random) {
  const statuses = [{ at: createdAt, status: 'CREATED' }];
  if (random() < 0.05) return statuses; // never opens the link
  // Some sign at once, in the office or on the phone; most open the link from their mail hours later.
  const isAtOnce = random() < 0.2;
  const consentAt = isAtOnce
    ? createdAt + around(5 * minute, 0.6, random)
    : whenAwake(createdAt + around(6 * hour, 1, random), random);
  statuses.push({ at: consentAt, status: 'CONSENT_RECEIVED', isSigning: isAtOnce });
  const submittedAt = consentAt + around(8 * minute, 0.5, random);
  statuses.push({ at: submittedAt, status: 'TAX_AUTHORIZATION_SUBMITTED', isSigning: true });
  const decidedAt = inOffice(submittedAt + around(10 * day, 0.6, random), random);
  const isRejected = random() < 0.08;
  statuses.push({ at: decidedAt, status: isRejected ? 'REJECTED' : 'AUTHORIZED' });
  const completedAt = inOffice(decidedAt + around(60 * day, 0.5, random), random);
  if (!isRejected) statuses.push({ at: completedAt, status: 'COMPLETED' });
  return statuses;
}

/** A token is replaced every 30 days on average. */
function rotations(createdAt, monthEnds, random) {
  const pause = () => -30 * day * Math.log(1 - random());
  const times = [];
  for (let at = createdAt + pause(); at < monthEnds; at += pause()) times.push(at);
  return times;
}

/** A refresh within an hour of the authorization, then one a week until it is completed. */
function jobsOf(statuses, monthEnds, random) {
  const from = statuses.find(({ status }) => status === 'AUTHORIZED')?.at ?? Infinity;
  const until = Math.min(monthEnds, statuses.find(({ status }) => status === 'COMPLETED')?.at ?? monthEnds);
  const jobs = [];
  for (let at = from + random() * hour; at < until; at += 7 * day) {
    const startsAt = inOffice(at, random);
    const endsAt = startsAt + around(4 * minute, 1, random);
    jobs.push({ id: randomUUID(), startsAt, endsAt, endsAs: random() < 0.05 ? 'failed' : 'completed' });
  }
  return jobs;
}

/** The service in this thread, in place of node-fetch. It answers at once and counts its token calls. */
export class SimulatedService {
  /** Token calls in each hour of the month. */
  tokenCallsPerHour;
  #cycles;

  constructor({ cycles, days, time, outage }) {
    this.time = time;
    this.outage = outage;
    this.tokenCallsPerHour = new Array(24 * days).fill(0);
    this.#cycles = new Map(cycles.map((cycle) => [cycle.id, cycle]));
  }

  fetch = async (url, { headers }) => {
    const { now } = this.time;
    const [, kind, first, second, third] = new URL(url).pathname.split('/');
    const cycle = this.#cycles.get(kind === 'auth' ? second : first);
    if (kind === 'auth' && now >= monthBegins) this.tokenCallsPerHour[Math.floor((now - monthBegins) / hour)] += 1;
    if (now >= this.outage.from && now < this.outage.until) return answer(503);
    const token = `token-not-real-${cycle.rotations.filter((at) => at <= now).length}`;
    if (kind === 'auth') return answer(200, recordOf(cycle, token, now));
    if (headers.Authorization !== `Bearer ${token}`) return answer(401);
    return answer(200, jobOf(cycle, third, now));
  };
}

/** The parts of a response that the gateway reads; a real one of node-fetch takes ten times as long to create. */
function answer(status, json) {
  const bytes = Buffer.from(json === undefined ? '' : JSON.stringify(json));
  const headers = { has: () => false, get: () => null };
  const give = { data: (listener) => listener(bytes), end: (listener) => listener() };
  const on = (event, listener) => queueMicrotask(() => give[event]?.(listener));
  return { status, headers, body: { on } };
}

function recordOf({ id, createdAt, statuses }, token, now) {
  return {
    access_token: token,
    taxpayer_id: id,
    name: 'Nobody Atall (not real)',
    metadata: {},
    provider_id: 'service-sandbox',
    created_at: new Date(createdAt).toISOString(),
    status: statuses.findLast(({ at }) => at <= now).status,
  };
}

function jobOf({ id, jobs }, jobId, now) {
  const { endsAt, endsAs } = jobs.find((job) => job.id === jobId);
  return { status: now < endsAt ? 'processing' : endsAs, jobId, taxpayerId: id, name: 'Data refresh (not real)' };
}
