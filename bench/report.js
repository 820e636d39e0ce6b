// The tables of the benchmarks, in Markdown.

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuRatio } from './measure.js';

/** The machine in one line. */
export function machine() {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} x ${cpu.model.trim()}, ${memory} GB, ${type()} ${release()}, Node.js ${process.version}`;
}

export function heading({ rounds, seconds, pinning }) {
  const date = new Date().toISOString().slice(0, 10);
  return `Measured ${date} on ${machine()}. ${rounds} rounds of ${seconds} s each; cores: ${pinning}.
`;
}

/** One row per target; CPU also as a multiple of the gateway's. */
export function scenarioTable({ title, name }, results) {
  const own = results.find((result) => result.name === 'gateway');
  const rows = results.map((result) => [
    result.name,
    `${round(result.cpuUs)} (${round(result.spread[0])}–${round(result.spread[1])})`,
    own ? `${cpuRatio(result, own).toFixed(2)}x` : '',
    result.p50Ms.toFixed(2),
    result.p99Ms.toFixed(2),
    Math.round(result.perSecond),
    Math.round(result.megabytes),
    round(result.upstreamPer1000),
    storeCell(result.storePer1000),
    result.failed,
  ]);
  const columns = ['target', 'CPU µs/request (range)', 'to the gateway', 'p50 ms', 'p99 ms', 'requests/s', 'RSS MB'];
  return `**${title}** (\`${name}\`)\n\n${table([...columns, 'calls/1000', 'store/1000', 'failed'], rows)}`;
}

/** One row per scenario: the gateway's CPU, and the others' as multiples of it; in brackets, the promised ratio. */
export function summaryTable(scenarios, results) {
  const rows = scenarios.flatMap(({ name, title }) => {
    const own = results[name]?.find((result) => result.name === 'gateway');
    if (own === undefined) return [];
    const costs = [own.p99Ms.toFixed(2), round(own.upstreamPer1000), storeCell(own.storePer1000)];
    return [
      [`${title} (\`${name}\`)`, round(own.cpuUs), ...others.map((other) => ratioCell(results, name, other)), ...costs],
    ];
  });
  if (rows.length === 0) return '';
  return table(['request', 'CPU µs', ...others, 'p99 ms', 'calls/1000', 'store/1000'], rows);
}

const others = ['apolloExpress', 'mercuriusJit', 'rawHttp'];

/** The CPU ratio to the gateway; bold when it breaks a promise. */
function ratioCell(results, scenario, other) {
  const ratio = ratioIn(results[scenario], other, 'gateway');
  if (ratio === undefined) return '–';
  const cell = `${ratio.toFixed(2)}x`;
  const promise = promises.find((each) => each.scenario === scenario && each.than === other);
  if (promise === undefined) return cell;
  return `${promise.isMet(promise.measured(results)) ? cell : `**${cell}**`} (${promise.bound})`;
}

/** Store operations; a dash for a target without a store. */
export function storeCell(count) {
  return Number.isNaN(count) ? '–' : round(count);
}

export function revocationTable(results) {
  const rows = results.map(({ name, failed, tokenCalls }) => [name, failed, tokenCalls]);
  const title = '**Every access token revoked at once, then 100 jobs of 20 taxpayers asked for** (`revoked`)';
  return `${title}\n\n${table(['target', 'failed of 100', 'token calls'], rows)}`;
}

/** The CPU ratio of two targets; undefined when one of them was not measured. */
function ratioIn(results, one, other) {
  const [first, second] = [one, other].map((name) => results?.find((result) => result.name === name));
  return first && second && cpuRatio(first, second);
}

function p99Ratio(results, one, other) {
  const [first, second] = [one, other].map((name) => results?.find((result) => result.name === name)?.p99Ms);
  return first / second;
}

const timesCheaper = (scenario, than, needed, gateway = 'gateway') => ({
  ...(gateway === 'gateway' && { scenario, than, bound: `${needed}x` }),
  what: `CPU of ${than} to ${gateway === 'gateway' ? 'the gateway' : gateway}, \`${scenario}\``,
  needed: `at least ${needed}x`,
  measured: ({ [scenario]: results }) => ratioIn(results, than, gateway),
  isMet: (ratio) => ratio >= needed,
});
const atMost = (most, what, measured) => ({
  what,
  needed: `at most ${most}x`,
  measured,
  isMet: (ratio) => ratio <= most,
});
const atMostOfFloor = (scenario, most) => ({
  ...atMost(most, `CPU of the gateway to rawHttp, \`${scenario}\``, ({ [scenario]: results }) =>
    ratioIn(results, 'gateway', 'rawHttp'),
  ),
  ...{ scenario, than: 'rawHttp', bound: `${(1 / most).toFixed(2)}x` },
});
const promises = [
  timesCheaper('hot-token', 'apolloExpress', 12),
  timesCheaper('job-status', 'apolloExpress', 12),
  timesCheaper('job-aliases', 'apolloExpress', 20),
  timesCheaper('typename', 'apolloExpress', 7),
  timesCheaper('create-link', 'apolloExpress', 1.3),
  ...['hot-token', 'job-status', 'job-aliases', 'new-documents', 'typename'].map((scenario) =>
    timesCheaper(scenario, 'mercuriusJit', 1),
  ),
  ...['hot-token', 'typename'].map((scenario) => atMostOfFloor(scenario, 1.3)),
  ...['ES256', 'RS256'].map((alg) =>
    atMost(1.15, `CPU of verifying a token to that of jose alone, ${alg}`, (results) => results[`token-${alg}`]),
  ),
  atMost(1.1, 'CPU of a call to the service to a bare call of node-fetch', (results) => results['upstream-clients']),
  ...['cold-record', 'cold-job', 'cold-job-known'].flatMap((scenario) => [
    timesCheaper(scenario, 'apolloExpress', 1.5),
    timesCheaper(scenario, 'apolloExpress', 1.5, 'gatewayRedis'),
  ]),
  ...['hot-token', 'statuses', 'aliases'].flatMap((kind) => [
    atMost(2, `p99 of the gateway to rawHttp at half of capacity, \`tail\` ${kind}`, ({ tail }) =>
      p99Ratio(tail?.[kind], 'gateway', 'rawHttp'),
    ),
    {
      what: `p99 of apolloExpress to the gateway at the same load, \`tail\` ${kind}`,
      needed: 'at least 10x',
      measured: ({ tail }) => p99Ratio(tail?.[kind], 'apolloExpress', 'gateway'),
      isMet: (ratio) => ratio >= 10,
    },
  ]),
  {
    what: 'p99 of apolloExpress to the gateway, `hot-token-50ms`',
    needed: 'at least 10x',
    measured: ({ 'hot-token-50ms': results }) => p99Ratio(results, 'apolloExpress', 'gateway'),
    isMet: (ratio) => ratio >= 10,
  },
];

/** The promises beside the figures of this run; `results` by scenario. Empty when no promise was measured. */
export function promisesTable(results) {
  const rows = promises.flatMap(({ what, needed, measured, isMet }) => {
    const ratio = measured(results);
    return Number.isFinite(ratio) ? [[what, needed, `${ratio.toFixed(2)}x`, isMet(ratio) ? 'yes' : 'no']] : [];
  });
  if (rows.length === 0) return '';
  return `**Meant and measured**\n\n${table(['ratio', 'meant', 'measured', 'met'], rows)}`;
}

export function table(columns, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |\n`;
  return line(columns) + line(columns.map((_, index) => (index === 0 ? '---' : '--:'))) + rows.map(line).join('');
}

/** A dash for small counts: the heap changes by more than their size. */
export function bytesEach(bytes, count) {
  return count < 1000 ? '–' : Math.round(bytes);
}

export function round(number) {
  return number >= 100 ? String(Math.round(number)) : number.toFixed(1);
}

/** Replaces the text between the two markers `name` of a page; the rest of the page is hand-written. */
export function writeSection(name, text, path) {
  const file = resolve(fileURLToPath(new URL('../..', import.meta.url)), path);
  const page = readFileSync(file, 'utf8');
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const [head, tail] = [page.indexOf(begin), page.indexOf(end)];
  if (head === -1 || tail === -1) throw new Error(`${path} has no markers for ${name}`);
  writeFileSync(file, `${page.slice(0, head + begin.length)}\n${text}\n${page.slice(tail)}`);
  process.stdout.write(`\nWritten to ${path}\n`);
}
