// npm run bench:sparing -- --month: simulates a month of an office of 2,000 taxpayers, once for each freshness rule.

import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inParallel } from '../inParallel.js';
import { quantile } from '../quantile.js';
import { table } from '../report.js';

/** `repeats`: with so many seeds, from `seed` on. */
export const usualMonth = { seed: 14, repeats: 3, taxpayers: 2000, days: 30, parts: 4 };
const usualShare = 0.1;
const defaultBudget = 600;
const fixed = { name: 'fixed, 15 minutes', settings: { TOKEN_FRESH_SECONDS: '900' } };
const learnedWith = (share) => ({
  name: `learned, ${share}`,
  share,
  settings: { TOKEN_FRESH_SHARE: String(share) },
});
const learned = learnedWith(usualShare);
/** Each part of the taxpayers has its own fleet, which gets a part of the budget. */
const budgeted = ({ parts }) => ({
  name: `learned, ${defaultBudget} calls an hour`,
  settings: { ...learned.settings, TOKEN_BUDGET_PER_HOUR: String(defaultBudget / parts) },
});
const curveShares = [0.02, 0.05, 0.2, 0.3, 0.5];

/** The promised effects of a share of 0.1. `measured` and `isMet` take the result of {@link simulateMonth}. */
const promises = [
  {
    text: 'token calls: at least 8 times fewer',
    measured: ({ before, after }) => `${(before.tokenCalls / after.tokenCalls).toFixed(1)} times`,
    isMet: ({ before, after }) => before.tokenCalls >= 8 * after.tokenCalls,
  },
  {
    text: 'median lag in the hosted flow: lower',
    measured: ({ before, after }) => `${inWords(after.signing.median)} instead of ${inWords(before.signing.median)}`,
    isMet: ({ before, after }) => after.signing.median < before.signing.median,
  },
  {
    text: 'p95 lag as a share of the time since the change before, over all seeds: at most 12 %',
    measured: (month) => percent(p95ShareOfSeeds(month)),
    isMet: (month) => p95ShareOfSeeds(month) <= 0.12,
  },
];

/**
 * The figures of the month: `before`, with a fixed freshness; `after`, with the learned one; `seeds`, the latter with
 * `repeats` seeds; `budgeted`, with the default budget; with `curve` also `shares`, with other shares. Taxpayers do not affect
 * each other, so each part of them has its own process and fleet; the figures do not depend on how many run at once.
 */
export async function simulateMonth({ curve = false, repeats = 1, ...month }) {
  const again = Array.from({ length: repeats - 1 }, (_, n) => ({ ...learned, seed: month.seed + 1 + n }));
  const others = curve ? curveShares.map(learnedWith) : [];
  const rules = [fixed, learned, budgeted(month), ...again, ...others];
  const runs = rules.flatMap((rule) => Array.from({ length: month.parts }, (_, part) => ({ ...month, ...rule, part })));
  const parts = await inParallel(runs.length, availableParallelism(), async (n) => {
    const { name, seed, part } = runs[n];
    const result = await run(runs[n]);
    process.stderr.write(`${name}, seed ${seed}: part ${part + 1} of ${month.parts}\n`);
    return result;
  });
  const found = rules.map((rule, n) => {
    const own = parts.slice(n * month.parts, (n + 1) * month.parts);
    return { seed: month.seed, ...rule, ...figuresOf(own) };
  });
  const [before, after, withBudget, ...rest] = found;
  return {
    before,
    after,
    budgeted: withBudget,
    seeds: [after, ...rest.slice(0, again.length)],
    shares: rest.slice(again.length),
  };
}

/** The tables of a result of {@link simulateMonth}, and the promises that it breaks. */
export function reportOf(month) {
  const { before, after, seeds, shares } = month;
  const sections = [sideBySide([before, after, month.budgeted]), meant(month), variations([...seeds, ...shares])];
  return { broken: promises.filter(({ isMet }) => !isMet(month)).map(({ text }) => text), text: sections.join('\n') };
}

/** A process of its own for each, because a thread would not read TypeScript. */
async function run(part) {
  const program = fileURLToPath(new URL('./monthOfRule.js', import.meta.url));
  // Most objects live only as long as a call.
  const args = ['--import', 'tsx', '--max-semi-space-size=32', program, JSON.stringify(part)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: Infinity });
  return JSON.parse(stdout);
}

function figuresOf(parts) {
  const all = (name) => parts.flatMap((part) => part[name]);
  const sum = (name) => parts.reduce((total, { count }) => total + count[name], 0);
  const perHour = (name) => parts[0][name].map((_, hour) => parts.reduce((total, part) => total + part[name][hour], 0));
  const calls = perHour('tokenCallsPerHour');
  return {
    looks: sum('looks'),
    tokenCalls: calls.reduce((total, count) => total + count, 0),
    busiestHour: Math.max(...calls),
    hoursRefused: perHour('refusedPerHour').filter((refused) => refused > 0).length,
    signing: lagsOf(all('changes').filter(({ isSigning }) => isSigning)),
    changesShown: all('steps'),
    steps: lagsOf(all('steps')),
    jobEnds: lagsOf(all('jobEnds')),
    stale: sum('stale'),
    failed: sum('failed'),
  };
}

function lagsOf(changes) {
  const of = (share, measure) => quantile(changes.map(measure), share);
  return {
    count: changes.length,
    median: of(0.5, ({ lag }) => lag),
    p95: of(0.95, ({ lag }) => lag),
    p95Share: of(0.95, ({ lag, lasted }) => lag / lasted),
  };
}

function p95ShareOfSeeds({ seeds }) {
  return lagsOf(seeds.flatMap(({ changesShown }) => changesShown)).p95Share;
}

function sideBySide(figures) {
  const lag = (what, lags) => [
    [`${what}: changes`, (of) => lags(of).count],
    ['… median lag', (of) => inWords(lags(of).median)],
    ['… p95 lag', (of) => inWords(lags(of).p95)],
  ];
  const rows = [
    ['requests', ({ looks }) => looks],
    ['token calls', ({ tokenCalls }) => tokenCalls],
    ['… in the busiest hour', ({ busiestHour }) => busiestHour],
    ['hours in which the budget or a share of it was spent', ({ hoursRefused }) => hoursRefused],
    ...lag('in the hosted flow', ({ signing }) => signing),
    ...lag('changes as shown', ({ steps }) => steps),
    ['… p95 as a share of the time since the change before', ({ steps }) => percent(steps.p95Share)],
    ...lag('ends of jobs', ({ jobEnds }) => jobEnds),
    ['records shown stale', ({ stale }) => stale],
    ['requests with nothing to show', ({ failed }) => failed],
  ];
  const cells = rows.map(([what, of]) => [what, ...figures.map(of)]);
  return table(['', ...figures.map(({ name }) => name)], cells);
}

function meant(month) {
  const rows = promises.map(({ text, measured, isMet }) => [text, measured(month), isMet(month) ? 'yes' : 'no']);
  return table(['meant', 'measured', 'met'], rows);
}

/** The learned freshness with other seeds and other shares. */
function variations(figures) {
  const rows = figures.map(({ share, seed, tokenCalls, signing, steps }) => {
    return [share, seed, tokenCalls, inWords(signing.median), percent(steps.p95Share)];
  });
  return table(['share', 'seed', 'token calls', 'median lag in the hosted flow', 'p95 share'], rows);
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

function inWords(ms) {
  const seconds = ms / 1000;
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  return seconds < 7200 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
