import { errorCodes } from '../../src/errors/errorCodes.js';
import type { Asked, Auditor, Checks, Disturbance, End } from './Auditor.js';
import type { ServiceCall } from './SimulatedService.js';

/** How long a call may take with all its retries (`UPSTREAM_DEADLINE_MS`), in milliseconds. */
const deadlineMs = 10_000;
/** Longest waits, in milliseconds: for two lease holders, then for one's own call. A job also waits for its token. */
const boundMs = { read: 45_000, job: 90_000, link: 45_000 } as const;
const marginMs = 1000;
/** A process measures the longest freshness, 900 s, up to 0.03 % too short or too long. A jump of its wall clock changes nothing. */
const driftMs = 400;

/** One token call per taxpayer and token lifetime; a second one needs a reason named in `docs/token-broker.md`. */
function oneTokenCallPerLifetime(auditor: Auditor, call: ServiceCall) {
  if (call.endpoint !== 'token') return undefined;
  const { index, sentAt } = call;
  const underWay = auditor.calls.find(
    (other) =>
      other.endpoint === 'token' && other.index === index && other.endedAt === undefined && other.node !== call.node,
  );
  if (underWay && !auditor.disturbedBetween(underWay.sentAt - 15_000, sentAt, index)) {
    return `node ${call.node} asks for taxpayer ${index} while node ${underWay.node} does`;
  }
  const last = auditor.answersOf('token', index).at(-1);
  if (last === undefined) return undefined;
  const ageMs = sentAt - last.deliveredAt;
  const isOld = ageMs >= leastAgeMs(auditor, index, last.deliveredAt) - driftMs;
  if (isOld || auditor.rotated(index, last.arrivedAt) || auditor.disturbedBetween(last.sentAt - 15_000, sentAt, index))
    return undefined;
  return `taxpayer ${index} was read ${ageMs.toFixed(0)} ms ago by node ${last.node}, and now by node ${call.node}`;
}

/** The smallest maximum age of the requests that were open since `since`: no call is needed while a record is younger. */
function leastAgeMs({ plan, asked }: Auditor, index: number, since: number) {
  const wanted = asked.filter((each) => each.index === index && (each.endedAt ?? Infinity) >= since);
  return Math.min(plan.freshMs, ...wanted.map(({ maxAgeMs }) => maxAgeMs ?? Infinity));
}

/** A process that has a fresh record in memory does not read it again, whatever happens to the store. */
function noProcessAsksTwice(auditor: Auditor, call: ServiceCall) {
  if (call.endpoint !== 'token') return undefined;
  const { index, sentAt } = call;
  const last = auditor.answersOf('token', index).findLast(({ life }) => life === call.life);
  if (last === undefined) return undefined;
  // A record that another process wrote after the first try may have replaced this one in the store.
  const firstTryAt = beginOf(auditor, last);
  const meanwhile = auditor.calls.flatMap(({ endpoint, index: of, content, deliveredAt = 0 }) =>
    endpoint === 'token' &&
    of === index &&
    content !== undefined &&
    deliveredAt + onItsWayMs(auditor, deliveredAt) >= firstTryAt
      ? [deliveredAt]
      : [],
  );
  const since = Math.min(last.deliveredAt, ...meanwhile);
  const isOld = sentAt - since >= leastAgeMs(auditor, index, since) - driftMs;
  const isExcused = auditor.disturbances.some(
    ({ kind, taxpayer, until }) => kind === 'key' || (kind === 'forget' && taxpayer === index && until >= firstTryAt),
  );
  // An entry that the store held all along, unseen while it was away, may look like a recent write of another process.
  const isBlind = auditor.rotated(index, last.sentAt - 12_000) && auditor.had('store', 'store-loss');
  if (isOld || auditor.rotated(index, last.arrivedAt) || isExcused || isBlind) return undefined;
  return `node ${call.node} asks again for taxpayer ${index}, ${(sentAt - last.deliveredAt).toFixed(0)} ms after it was told`;
}

/** When the first try may have been sent of the call that `last` is a try of. A pause delays later tries. */
function beginOf({ calls, disturbances }: Auditor, last: ServiceCall) {
  const pauses = disturbances.filter(({ kind, node }) => kind === 'pause' && node === last.node);
  const longestMs = deadlineMs + lengthOf(pauses);
  const isTry = ({ endpoint, index, life, sentAt }: ServiceCall) =>
    endpoint === last.endpoint && index === last.index && life === last.life && sentAt >= last.sentAt - longestMs;
  return calls.find(isTry)?.sentAt ?? last.sentAt;
}

/** Without disturbances, a process that knows a newer token does not use a refused one. */
function noRefusedTokenWhenANewerIsKnown(auditor: Auditor, call: ServiceCall) {
  if (call.endpoint !== 'job') return undefined;
  const same = (other: ServiceCall) => other.life === call.life && other.deliveredAt !== undefined;
  const refusal = auditor.calls.find(
    (other) => same(other) && other.endpoint === 'job' && other.credential === call.credential && other.status === 401,
  );
  if (refusal?.deliveredAt === undefined) return undefined;
  const taxpayer = auditor.plan.jobs[call.index]?.taxpayer ?? -1;
  const { deliveredAt: refusedAt } = refusal;
  const newer = auditor
    .answersOf('token', taxpayer)
    .find((other) => same(other) && other.deliveredAt > refusedAt && !call.credential.endsWith(`-${other.token}`));
  if (newer === undefined || call.sentAt < newer.deliveredAt + deadlineMs + marginMs) return undefined;
  if (auditor.disturbedBetween(refusal.sentAt, call.sentAt, taxpayer)) return undefined;
  return `node ${call.node} uses ${call.credential}, which was refused, ${(call.sentAt - newer.deliveredAt).toFixed(0)} ms after it knew a newer one`;
}

/** Every answer shown came from a call for that very record or job, and is no older than allowed. */
function trueAndFresh(auditor: Auditor, asked: Asked) {
  if (asked.what === 'link' || asked.content === undefined || asked.error !== undefined) return undefined;
  const isRecord = asked.what === 'read' || asked.what === 'watch-record';
  const answers = auditor.answersOf(isRecord ? 'token' : 'job', asked.index);
  const brought = answers.filter(({ content }) => content === asked.content);
  const which = `${asked.what} ${asked.index} on node ${asked.node}`;
  if (brought.length === 0) return `${which} was answered with ${asked.content}, which no call brought`;
  if (asked.isStale || asked.what.startsWith('watch') || asked.content?.startsWith('completed')) return undefined;
  const broughtAt = Math.max(...brought.map(({ deliveredAt }) => deliveredAt));
  const mayBeMs = isRecord ? Math.min(auditor.plan.freshMs, Math.max(60_000, asked.maxAgeMs ?? Infinity)) : 1000;
  const ageMs = asked.askedAt - broughtAt;
  if (ageMs <= mayBeMs + driftMs + onItsWayMs(auditor, broughtAt) + 50) return undefined;
  return `${which} was answered with what was ${ageMs.toFixed(0)} ms old: at most ${mayBeMs}`;
}

/** No request waits longer than {@link boundMs}, pauses not counted. */
function everyWaitEnds(auditor: Auditor, asked: Asked) {
  if (asked.endedAt === undefined || asked.what.startsWith('watch')) return undefined;
  const took = asked.endedAt - asked.askedAt - pausedMs(auditor, asked.askedAt);
  const most = boundMs[asked.what as keyof typeof boundMs];
  return took > most
    ? `${asked.what} ${asked.index} on node ${asked.node} took ${took.toFixed(0)} ms: at most ${most}`
    : undefined;
}

/**
 * The store tells how long it has had an answer. One delivered at `since` may have been on its way to a slow store for so long,
 * and back while the process stood still.
 */
const onItsWayMs = (auditor: Auditor, since: number) => (auditor.had('store') ? 2000 : 0) + pausedMs(auditor, since);

/** For how long processes stood still since then. */
function pausedMs({ disturbances, world }: Auditor, since: number) {
  const pauses = disturbances.filter(
    ({ kind, until, from }) => kind === 'pause' && until >= since && from <= world.now,
  );
  return lengthOf(pauses);
}

function lengthOf(pauses: readonly Disturbance[]) {
  return pauses.reduce((sum, { from, until }) => sum + until - from, 0);
}

/** The key of a mark, which names the input, too. */
const keyOf = (mark = '') => mark.split(',')[0];

/** Requests with one key create at most one link, unless the store lost the record of the first. */
function oneLinkPerKey(auditor: Auditor, call: ServiceCall) {
  if (call.endpoint !== 'link' || call.status !== 201 || call.mark.startsWith('without')) return undefined;
  const key = keyOf(call.mark);
  const others = auditor.calls.filter(
    (other) => other !== call && other.endpoint === 'link' && other.status === 201 && keyOf(other.mark) === key,
  );
  const [first] = others;
  if (!first) return undefined;
  // Each process remembers the links that it created, whatever the store has lost.
  const isOwn = others.some(({ life, deliveredAt = Infinity }) => life === call.life && deliveredAt < call.sentAt);
  if (!isOwn && auditor.had('store-loss', 'key')) return undefined;
  return `${key} made a second link, by node ${call.node} after node ${first.node}`;
}

/** A link in an answer is one that the service created for this very input. */
function linksAreTrue(_: Auditor, asked: Asked) {
  if (asked.what !== 'link' || asked.content === undefined || asked.error !== undefined) return undefined;
  const isOwn = asked.content.endsWith(` ${asked.mark}`);
  return isOwn ? undefined : `${asked.mark} was answered with ${asked.content}`;
}

/** A later request with the same key and input gets the same link. */
function createdLinksAreReplayed(auditor: Auditor, asked: Asked) {
  if (asked.what !== 'link' || asked.key === undefined || asked.error === 'crashed') return undefined;
  const first = auditor.asked.find(
    ({ what, mark, content, error, endedAt = Infinity }) =>
      what === 'link' && mark === asked.mark && content !== undefined && error === undefined && endedAt < asked.askedAt,
  );
  if (first === undefined || asked.content === first.content) return undefined;
  if (auditor.disturbedBetween(first.askedAt - 15_000, auditor.world.now)) return undefined;
  // A process remembers its own tries with this key, also after the store has lost them.
  const isOwn = auditor.calls.some(
    ({ endpoint, life, mark }) => endpoint === 'link' && life === asked.life && keyOf(mark) === asked.key,
  );
  if (isOwn && auditor.had('store-loss', 'key')) return undefined;
  return `${asked.mark} was answered with ${asked.error ?? asked.content}, before with ${first.content}`;
}

/**
 * `OUTCOME_UNKNOWN` is answered only when a call for the key was sent, but while processes learn of another client secret, and
 * after the store has lost that a claim was withdrawn.
 */
function unknownOutcomesWereTried(auditor: Auditor, asked: Asked) {
  if (asked.what !== 'link' || asked.error !== 'OUTCOME_UNKNOWN') return undefined;
  const isSent = auditor.calls.some(({ endpoint, mark }) => endpoint === 'link' && keyOf(mark) === keyOf(asked.mark));
  const isRotating = auditor.disturbances.some(({ kind, from }) => kind === 'key' && auditor.world.now < from + 3500);
  if (isSent || isRotating || auditor.had('crash', 'pause', 'store-loss')) return undefined;
  return `nothing was sent for ${asked.mark}, and its outcome is said to be unknown`;
}

/** When the error tells the caller that it may try again, no link was created. */
function failedLinksMadeNone({ calls }: Auditor, asked: Asked) {
  const saysNone = [
    'UPSTREAM_UNAVAILABLE',
    'UPSTREAM_TIMEOUT',
    'UPSTREAM_RATE_LIMITED',
    'UPSTREAM_CREDENTIALS_REJECTED',
  ];
  if (asked.what !== 'link' || asked.key !== undefined || !saysNone.includes(asked.error ?? '')) return undefined;
  const made = calls.find(({ mark, status }) => mark === asked.mark && status === 201);
  return made && `${asked.mark} failed with ${asked.error}, and there is a link`;
}

/**
 * The fleet makes at most `budgetPerHour` token calls in the hour: again after each loss of the store's counts, and beside
 * them an eighth for each process that the store does not answer.
 */
function budgetIsKept(auditor: Auditor, call: ServiceCall) {
  const { budgetPerHour, nodes } = auditor.plan;
  if (call.endpoint !== 'token' || budgetPerHour === 0) return undefined;
  const count = (of: Disturbance['kind']) => auditor.disturbances.filter(({ kind }) => kind === of).length;
  if (auditor.had('key')) return undefined;
  const lives = count('crash') + nodes;
  const most =
    budgetPerHour * (1 + count('store-loss')) + (auditor.had('store') ? lives * Math.ceil(budgetPerHour / 8) : 0);
  const made = auditor.calls.filter(({ endpoint }) => endpoint === 'token').length;
  return made > most ? `${made} token calls in this hour: at most ${most}` : undefined;
}

/** After a 429, no process calls that endpoint until the pause is over. */
function silenceIsKept(auditor: Auditor, call: ServiceCall) {
  const blocking = auditor.calls.find((other) => {
    if (other === call || other.endpoint !== call.endpoint || other.deliveredAt === undefined) return false;
    if (other.status !== 429 || other.credential !== call.credential) return false;
    const until = other.deliveredAt + 1000 * (other.retryAfterSeconds ?? 5) - driftMs;
    return call.sentAt > other.deliveredAt + marginMs && call.sentAt < until;
  });
  if (!blocking || call.endpoint === 'job') return undefined;
  if (auditor.disturbedBetween(blocking.sentAt - 15_000, call.sentAt)) return undefined;
  return `node ${call.node} asks ${call.endpoint} while it was told to be silent`;
}

/** Refused client credentials are not tried again for 30 s. */
function refusedCredentialsRest(auditor: Auditor, call: ServiceCall) {
  if (call.endpoint === 'job') return undefined;
  const refusal = auditor.calls.find(
    ({ endpoint, deliveredAt, status, credential }) =>
      endpoint !== 'job' &&
      status === 401 &&
      credential === call.credential &&
      deliveredAt !== undefined &&
      call.sentAt > deliveredAt + marginMs &&
      call.sentAt < deliveredAt + 30_000 - driftMs,
  );
  if (!refusal || auditor.disturbances.some(({ kind, from }) => kind !== 'crash' && from <= call.sentAt))
    return undefined;
  const isLost = auditor.disturbedBetween(refusal.sentAt, (refusal.deliveredAt as number) + marginMs);
  return isLost ? undefined : `node ${call.node} uses ${call.credential}, which was refused`;
}

/** A process reads a job only while it has, or has just had, a request or watch for it. */
function noPollWithoutWatcher({ asked, world }: Auditor, call: ServiceCall) {
  if (call.endpoint !== 'job') return undefined;
  const wanted = asked.some(
    ({ what, index, life, endedAt = Infinity }) =>
      life === call.life &&
      (what === 'job' || what === 'watch-job') &&
      index === call.index &&
      endedAt > world.now - 2 * deadlineMs - 2000,
  );
  return wanted ? undefined : `node ${call.node} asks for job ${call.index}, and nobody wants to know`;
}

/** The fleet polls a job once per interval, however many watchers it has. */
function pollsKeepTheirPace(auditor: Auditor, call: ServiceCall) {
  if (call.endpoint !== 'job') return undefined;
  const { asked } = auditor;
  const last = auditor.answersOf('job', call.index).at(-1);
  if (last === undefined) return undefined;
  const since = last.deliveredAt;
  const isAsked = asked.some(
    ({ what, index, askedAt, endedAt = Infinity }) =>
      what === 'job' && index === call.index && endedAt >= since && askedAt <= call.sentAt,
  );
  const pauseMs = call.sentAt - since;
  if (
    isAsked ||
    pauseMs >= 890 ||
    auditor.disturbedBetween(last.sentAt - 15_000, call.sentAt, auditor.plan.jobs[call.index]?.taxpayer)
  )
    return undefined;
  return `node ${call.node} polls job ${call.index} ${pauseMs.toFixed(0)} ms after node ${last.node} did`;
}

/** A record that was read before its taxpayer was forgotten is not shown to requests that begin afterwards. */
function forgottenStaysForgotten(auditor: Auditor, asked: Asked) {
  if (asked.what !== 'read' || asked.content === undefined || asked.error !== undefined) return undefined;
  const order = auditor.forgotten.findLast(
    ({ taxpayer, doneAt }) => taxpayer === asked.index && doneAt !== undefined && asked.askedAt > doneAt + 5000,
  );
  if (!order) return undefined;
  const isDuring = (which: string) =>
    auditor.disturbances.some(({ kind, until }) => kind === which && until >= order.begunAt);
  // A failover that loses the erasure brings the record back.
  if (isDuring('store-loss')) return undefined;
  // A process that went from the first secret straight to the third cannot read a list written under the second.
  if (auditor.disturbances.filter(({ kind }) => kind === 'key').length > 1) return undefined;
  // A process may have copied the record under a new key that no other has yet, and crash before it reads the list.
  if (isDuring('key') && isDuring('crash')) return undefined;
  const isLate = asked.askedAt > auditor.plan.healthyFrom;
  if (!isLate && auditor.disturbances.some(({ kind }) => kind !== 'forget')) return undefined;
  const brought = auditor.answersOf('token', asked.index).filter(({ content }) => content === asked.content);
  const isNew = brought.some(({ sentAt }) => sentAt >= order.begunAt - 50);
  return isNew ? undefined : `node ${asked.node} shows taxpayer ${asked.index} as read before it was forgotten`;
}

/** Whatever happens, callers get an answer or a documented error code. */
function errorsHaveACode({ isStopping }: Auditor, { what, index, node, error }: Asked) {
  const isOurs = error === undefined || error === 'crashed' || error in errorCodes;
  return isOurs || isStopping ? undefined : `${what} ${index} on node ${node} failed with ${error}`;
}

/** From `healthyFrom` on, every read and job is answered, and no record is stale. */
function healthyAtLast(auditor: Auditor, asked: Asked) {
  const { plan } = auditor;
  if (asked.askedAt < plan.healthyFrom || asked.endedAt === undefined) return undefined;
  if ((asked.what !== 'read' && asked.what !== 'job') || plan.budgetPerHour > 0) return undefined;
  if (asked.error) return `${asked.what} ${asked.index} on node ${asked.node} still fails with ${asked.error}`;
  // A record whose token was refused is stale until the token is replaced.
  return asked.isStale && !auditor.rotated(asked.index)
    ? `${asked.what} ${asked.index} on node ${asked.node} is still shown stale`
    : undefined;
}

/** A watcher of a job is told of its end. */
function watchersHaveALastWord(auditor: Auditor) {
  const { plan, asked } = auditor;
  if (plan.budgetPerHour > 0) return undefined;
  const left = asked.find(
    ({ what, index, endedAt, askedAt }) =>
      what === 'watch-job' &&
      endedAt === undefined &&
      Math.max(askedAt, plan.jobs[index]?.endsAt ?? 0) < plan.quietFrom,
  );
  return left && `the watcher of job ${left.index} on node ${left.node} was not told of its end`;
}

/** A watch ends by itself only after its longest time, or once it has shown the end of the job. */
function watchesEndWithTheJob({ isStopping }: Auditor, asked: Asked) {
  if (isStopping) return undefined;
  if (asked.what !== 'watch-job' || asked.endedAt === undefined || asked.error !== undefined) return undefined;
  const isOver = asked.endedAt - asked.askedAt >= (asked.maxMs ?? Infinity) - marginMs;
  if (isOver || asked.content?.startsWith('completed')) return undefined;
  return `the watch of job ${asked.index} on node ${asked.node} ended at ${asked.content}`;
}

function nothingIsLeft(_: Auditor, { timers, unfinished, polled }: End) {
  const left = { timers, polled, requests: unfinished.length };
  const some = Object.entries(left).filter(([, count]) => count > 0);
  return some.length === 0 ? undefined : `left: ${some.map(([what, count]) => `${count} ${what}`).join(', ')}`;
}

export const checks: Checks = {
  sent: [
    oneTokenCallPerLifetime,
    noProcessAsksTwice,
    noRefusedTokenWhenANewerIsKnown,
    budgetIsKept,
    silenceIsKept,
    refusedCredentialsRest,
    noPollWithoutWatcher,
    pollsKeepTheirPace,
  ],
  arrived: [oneLinkPerKey],
  answered: [
    errorsHaveACode,
    trueAndFresh,
    everyWaitEnds,
    linksAreTrue,
    failedLinksMadeNone,
    createdLinksAreReplayed,
    unknownOutcomesWereTried,
    watchesEndWithTheJob,
    forgottenStaysForgotten,
    healthyAtLast,
  ],
  beforeEnd: [watchersHaveALastWord],
  atEnd: [nothingIsLeft],
};
