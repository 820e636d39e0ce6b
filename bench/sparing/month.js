// npm run bench:sparing -- --month: simulates a month of an office of 2,000 taxpayers, once for each freshness rule.

import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { table } from '../report.js';
import { inParallel, quantile } from './load.js';

export const usualMonth = { seed: 14, repeats: 3, taxpayers: 2000, days: 30, parts: 4 };
const usualShare = 0.1;
const defaultBudget = 600;
const fixed = { name: 'fixed, 15 minutes', settings: { TOKEN_FRESH_SECONDS: '900' } };
const learnedWith = (share) => ({
  ...{ name: `learned, ${share}`, share },
  settings: { TOKEN_FRESH_SHARE: String(share) },
});
const learned = learnedWith(usualShare);
/** Each part of the taxpayers has its own fleet, which gets a part of the budget. */
const budgeted = ({ parts }) => ({
  name: `learned, ${defaultBudget} calls an hour`,
  settings: { ...learned.settings, TOKEN_BUDGET_PER_HOUR: String(defaultBudget / parts) },
});
const curveShares = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5];

/** The promised effects of a share of 0.1. `measured` and `isMet` take the result of {@link simulateMonth}. */
const promises = [
  {
    text: 'token calls: at least 8 times fewer',
    measured: ({ before, after }) => `${times(before.tokenCalls, after.tokenCalls)}`,
    isMet: ({ before, after }) => before.tokenCalls >= 8 * after.tokenCalls,
  },
  {
    text: 'median lag in the hosted flow: lower',
    measured: ({ before, after }) => `${inWords(after.signing.median)} instead of ${inWords(before.signing.median)}`,
    isMet: ({ before, after }) => after.signing.median < before.signing.median,
  },
  {
    text: 'p95 lag as a share of the time since the change before, over all seeds: at most 12 %',
    measured: ({ seeds }) => percent(lagsOf(seeds.flatMap(({ changesShown }) => changesShown)).p95Share),
    isMet: ({ seeds }) => lagsOf(seeds.flatMap(({ changesShown }) => changesShown)).p95Share <= 0.12,
  },
];

/**
 * The figures of the month: `before`, with a fixed freshness; `after`, with the learned one; `seeds`, the latter with
 * `repeats` seeds; `budgeted`, with the default budget; with `curve` also `shares`, with other shares. Taxpayers do not affect
 * each other, so each part of them has its own thread and fleet; the figures do not depend on how many run at once.
 */
export async function simulateMonth({ curve = false, repeats = 1, onProgress = () => {}, ...month }) {
  const { seed } = month;
  const again = Array.from({ length: repeats - 1 }, (_, n) => ({ ...learned, seed: seed + 1 + n }));
  const others = curve ? curveShares.filter((share) => share !== usualShare).map(learnedWith) : [];
  const rules = [fixed, learned, budgeted(month), ...again, ...others];
  const runs = rules.flatMap((rule) => Array.from({ length: month.parts }, (_, part) => ({ rule, part })));
  const parts = await inParallel(runs.length, availableParallelism(), async (n) => {
    const { rule, part } = runs[n];
    const result = await run({ seed, ...month, ...rule, part });
    onProgress(`${rule.name}${rule.seed ? `, seed ${rule.seed}` : ''}: part ${part + 1} of ${month.parts}`);
    return result;
  });
  const found = rules.map((rule) => {
    const own = parts.filter((_, n) => runs[n].rule === rule);
    return { seed, ...rule, ...figuresOf(own, month) };
  });
  const [before, after, withBudget] = found;
  const seeds = [after, ...found.slice(3, 2 + repeats)];
  const shares = [after, ...found.slice(2 + repeats)].sort((one, other) => one.share - other.share);
  return { before, after, budgeted: withBudget, seeds, shares: curve ? shares : [] };
}

/** The tables of a result of {@link simulateMonth}, and the promises that it breaks. */
export function reportOf(month) {
  const sections = [sideBySide([month.before, month.after, month.budgeted]), meant(month), bySeed(month.seeds)];
  if (month.shares.length > 0) sections.push(curveOf(month.shares));
  return { broken: promises.filter(({ isMet }) => !isMet(month)).map(({ text }) => text), text: sections.join('\n') };
}

function run(workerData) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./monthOfRule.js', import.meta.url), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: 64 }, // most objects live only as long as a call
    });
    worker.on('message', resolve);
    worker.on('error', reject);
    worker.on('exit', (code) => reject(new Error(`A thread of the month ended with ${code}`)));
  });
}

function figuresOf(parts, { taxpayers }) {
  const all = (name) => parts.flatMap((part) => part[name]);
  const sum = (name) => parts.reduce((total, { count }) => total + count[name], 0);
  const perHour = (name) => parts[0][name].map((_, hour) => parts.reduce((total, part) => total + part[name][hour], 0));
  const ofAll = perHour('tokenCallsPerHour');
  const ofWatchers = perHour('watchCallsPerHour');
  const changes = all('changes');
  const of = (stage) => lagsOf(changes.filter((change) => change.stage === stage));
  const [looks, tokenCalls, jobCalls] = [sum('looks'), sum('tokenCalls'), sum('jobCalls')];
  return {
    ...{ looks, tokenCalls, jobCalls, stale: sum('stale') },
    perTaxpayer: tokenCalls / taxpayers,
    perThousand: (1000 * tokenCalls) / looks,
    busiestHour: Math.max(...ofAll),
    hoursAboveBudget: ofAll.filter((calls) => calls > defaultBudget).length,
    watchCalls: ofWatchers.reduce((total, calls) => total + calls, 0),
    watchersBusiestHour: Math.max(...ofWatchers),
    budgetUsed: ofAll.reduce((total, calls) => total + calls, 0) / (ofAll.length * defaultBudget),
    hoursRefused: perHour('refusedPerHour').filter((refused) => refused > 0).length,
    ...{ refusedWatches: sum('refusedWatches'), failed: sum('failed'), changesShown: all('steps') },
    ...{ signing: of('signing'), consent: of('consent'), authority: of('authority'), completed: of('completed') },
    ...{ all: lagsOf(changes), steps: lagsOf(all('steps')), jobEnds: lagsOf(all('jobEnds')) },
    pollsPerJob: jobCalls / sum('jobs'),
    pollsPerThousand: (1000 * jobCalls) / looks,
  };
}

function lagsOf(changes) {
  const of = (share, measure) => quantile(changes.map(measure), share);
  const within = changes.filter(({ lag, lasted }) => lag <= Math.max(60_000, lasted / 10));
  return {
    count: changes.length,
    median: of(0.5, ({ lag }) => lag),
    p95: of(0.95, ({ lag }) => lag),
    p95Share: of(0.95, ({ lag, lasted }) => lag / lasted),
    p95LongShare: of(0.95, ({ lag, lasted }) => (lag > 60_000 ? lag / lasted : 0)),
    within: within.length / changes.length,
    p95Wait: of(0.95, ({ wait }) => wait),
  };
}

function sideBySide(figures) {
  const lag = (what, lags) => [
    [`${what}: changes`, (of) => lags(of).count],
    ['… median lag', (of) => inWords(lags(of).median)],
    ['… p95 lag', (of) => inWords(lags(of).p95)],
    ['… p95 as a share of the time since the change before', (of) => percent(lags(of).p95Share)],
  ];
  const rows = [
    ['requests', ({ looks }) => looks],
    ['token calls', ({ tokenCalls }) => tokenCalls],
    ['… per taxpayer', ({ perTaxpayer }) => perTaxpayer.toFixed(0)],
    ['… per 1,000 requests', ({ perThousand }) => perThousand.toFixed(2)],
    ['… in the busiest hour', ({ busiestHour }) => busiestHour],
    [`… hours with more than ${defaultBudget}`, ({ hoursAboveBudget }) => hoursAboveBudget],
    [`… of ${defaultBudget} in each hour, nights included`, ({ budgetUsed }) => percent(budgetUsed)],
    ['… for watchers', ({ watchCalls }) => watchCalls],
    ['… … in their busiest hour', ({ watchersBusiestHour }) => watchersBusiestHour],
    ['hours in which the budget or a share of it was spent', ({ hoursRefused }) => hoursRefused],
    ["… polls refused because the watchers' share was", ({ refusedWatches }) => refusedWatches],
    ...lag('in the hosted flow', ({ signing }) => signing),
    ...lag('consent, hours after the link', ({ consent }) => consent),
    ...lag('the authority decided', ({ authority }) => authority),
    ...lag('completed', ({ completed }) => completed),
    ...lag('all changes', ({ all }) => all),
    ['… p95 until somebody saw it, nights and weekends included', ({ all }) => inWords(all.p95Wait)],
    ...lag('changes as shown', ({ steps }) => steps),
    ['… the same, lags of up to a minute not counted', ({ steps }) => percent(steps.p95LongShare)],
    ['… shown within a tenth of that time, or a minute', ({ steps }) => percent(steps.within)],
    ['records shown stale', ({ stale }) => stale],
    ['requests with nothing to show', ({ failed }) => failed],
    ['job polls', ({ jobCalls }) => jobCalls],
    ['… per job', ({ pollsPerJob }) => pollsPerJob.toFixed(1)],
    ['… per 1,000 requests', ({ pollsPerThousand }) => pollsPerThousand.toFixed(2)],
    ...lag('ends of jobs', ({ jobEnds }) => jobEnds),
  ];
  const cells = rows.map(([what, of]) => [what, ...figures.map(of)]);
  return table(['', ...figures.map(({ name }) => name)], cells);
}

function meant(month) {
  const rows = promises.map(({ text, measured, isMet }) => [text, measured(month), isMet(month) ? 'yes' : 'no']);
  return table(['meant', 'measured', 'met'], rows);
}

function bySeed(seeds) {
  const rows = seeds.map(({ seed, tokenCalls, signing, steps }) => [
    ...[seed, tokenCalls, inWords(signing.median), steps.count, percent(steps.p95Share)],
    ...[percent(steps.p95LongShare), percent(steps.within)],
  ]);
  const columns = ['seed', 'token calls', 'median lag in the hosted flow', 'changes as shown', 'p95 share'];
  return table([...columns, 'without lags up to a minute', 'within a tenth, or a minute'], rows);
}

function curveOf(shares) {
  const columns = ['share', 'token calls', 'busiest hour', 'median lag in the hosted flow', 'median lag', 'p95 lag'];
  const rows = shares.map(({ share, tokenCalls, busiestHour, signing, steps }) => [
    ...[share, tokenCalls, busiestHour, inWords(signing.median), inWords(steps.median)],
    ...[inWords(steps.p95), percent(steps.p95Share), percent(steps.p95LongShare)],
  ]);
  return table([...columns, 'p95 share', 'without lags up to a minute'], rows);
}

const times = (before, after) => `${(before / after).toFixed(1)} times`;
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function inWords(ms) {
  const seconds = ms / 1000;
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  return seconds < 7200 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
