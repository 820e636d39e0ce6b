// The tables of npm run capacity, for the whole fleet.

import { machine, round, table } from '../../bench/report.js';

const windowSeconds = 10;

/**
 * @param given what was simulated
 * @param found what was found in each phase
 * @param costs measured on a real Redis, in microseconds and bytes; undefined without one
 */
export function reportOf(given, found, costs) {
  const { processes, known, taxpayers, rate, sample, seed, size } = given;
  const usual = figuresOf(found.find(({ title }) => title === 'as usual') ?? found[0], given);
  const rows = found.map((phase) => ({ ...figuresOf(phase, given), ...costOf(phase, given, usual) }));
  const head = `${number(processes)} processes, ${number(rate)} requests a second each, for ${number(taxpayers)} of ${number(known)} taxpayers; one of ${number(sample)} simulated, with seed ${seed}.`;
  const sections = [
    head,
    `**The service and the callers**\n\n${callsTable(rows)}`,
    `**The store**\n\n${storeTable(rows)}`,
  ];
  if (costs)
    sections.push(`**One Redis**, its costs measured on ${machine()}\n\n${redisTable(found, given, costs, size)}`);
  return sections.join('\n\n').replaceAll(/\n{3,}/g, '\n\n');
}

function callsTable(rows) {
  const columns = ['phase', 'requests/s', 'failed', 'token calls/s', 'busiest 10 s', 'more than usual', 'over after'];
  const cells = rows.map((row) => [
    ...[row.title, number(row.requests), number(row.failed), decimal(row.tokenCalls), decimal(row.mostTokenCalls)],
    ...[row.extra === undefined ? '–' : number(row.extra), row.overMs === undefined ? '–' : `${row.overMs / 1000} s`],
    ...[decimal(row.jobCalls), number(row.mostWaiting), number(row.mostCalls)],
  ]);
  return table([...columns, 'job calls/s', 'requests waiting', 'calls under way'], cells);
}

function storeTable(rows) {
  const columns = ['phase', 'operations per request', 'operations/s', 'busiest 10 s'];
  const cells = rows.map((row) => [
    ...[row.title, row.perRequest.toFixed(2), number(row.operations), number(row.mostOperations)],
    row.aloneMs === undefined ? '–' : `${(row.aloneMs / 1000).toFixed(0)} s`,
  ]);
  return table([...columns, 'last process uses it again'], cells);
}

function redisTable(found, given, costs, size) {
  const per = [
    ['a read', costs.get],
    ['a read that takes the lease if there is nothing', costs.acquire],
    ['a write that ends the lease', costs.settle],
  ].map(([what, us]) => [what, us.toFixed(1)]);
  const shares = found.map((phase) => {
    const cpu = phase.windows.map((window) => cpuOf(window, phase, given, costs));
    const percent = (share) => `${(100 * share).toFixed(0)} %`;
    return [phase.title, percent(mean(cpu)), percent(Math.max(...cpu))];
  });
  const entries = (given.known / (given.taxpayers / given.sample)) * size.entries;
  const memory = `${number(entries)} entries of ${Math.round(costs.bytes)} bytes: ${((entries * costs.bytes) / 2 ** 30).toFixed(1)} GiB.`;
  return [
    table(['operation', 'CPU of Redis, µs'], per),
    table(['phase', 'of one core', 'busiest 10 s'], shares),
    memory,
    '',
  ].join('\n');
}

/** The share of one core that Redis needs in `window`. */
function cpuOf(window, { operations }, { sample }, costs) {
  const all = operations.reduce((sum, [, count]) => sum + count, 0);
  const us =
    operations.reduce((sum, [name, count]) => sum + count * (costs[name] ?? costs.settle), 0) / Math.max(1, all);
  const own = window.ownOperations * costs.get;
  return (own + sample * window.storeOperations * us) / (windowSeconds * 1e6);
}

/** Rates are per second. */
function figuresOf({ title, windows, aloneMs }, { sample }) {
  const of = (figure) => windows.map((window) => (sample * window[figure]) / windowSeconds);
  const total = (figure) => sample * windows.reduce((sum, window) => sum + window[figure], 0);
  const operations = windows.map(
    ({ storeOperations, ownOperations }) => (sample * storeOperations + ownOperations) / windowSeconds,
  );
  return {
    ...{ title, aloneMs, failed: total('failed') },
    requests: mean(of('requests')),
    tokenCalls: mean(of('tokenCalls')),
    mostTokenCalls: Math.max(...of('tokenCalls')),
    jobCalls: mean(of('jobCalls')),
    mostWaiting: Math.max(...of('waitedMs')) / 1000,
    mostCalls: Math.max(...of('calledMs')) / 1000,
    perRequest: mean(operations) / mean(of('requests')),
    operations: mean(operations),
    mostOperations: Math.max(...operations),
  };
}

/** Token calls beyond the usual number, and when 95 % of them had been made. Empty when chance explains them. */
function costOf({ event, windows }, { sample }, usual) {
  const expected = (usual.tokenCalls * windowSeconds) / sample;
  const all = windows.reduce((sum, { tokenCalls }) => sum + tokenCalls - expected, 0);
  if (event === 'none' || all <= 3 * Math.sqrt(expected * windows.length) + 3) return {};
  let made = 0;
  const last = windows.findIndex(({ tokenCalls }) => {
    made += tokenCalls - expected;
    return made >= 0.95 * all;
  });
  return { extra: sample * all, overMs: (last + 1) * windowSeconds * 1000 };
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const number = (value) => Math.round(value).toLocaleString('en-US');
const decimal = (value) => (value >= 100 ? number(value) : round(value));
