// Where the CPU time of the gateway goes under one scenario: its V8 profile, summed up by room of src/, by package and for the
// runtime. A signal starts and stops the profiler, so that neither the start of the gateway nor the warm-up counts.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { preparedRounds } from './compare.js';
import { cpuMicroseconds, mainThreadMicroseconds } from './processCost.js';
import { round, storeCell, table } from './report.js';

const sampleUs = 200;
/** The first signal starts a profile, the second one writes it. */
const profileOnSignal = `data:text/javascript,${encodeURIComponent(`
  import { renameSync, writeFileSync } from 'node:fs';
  import { Session } from 'node:inspector';
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: ${sampleUs} });
  let isOn = false;
  process.on('SIGWINCH', () => {
    isOn = !isOn;
    if (isOn) session.post('Profiler.start', () => writeFileSync('profiling', ''));
    else
      session.post('Profiler.stop', (_, { profile }) => {
        writeFileSync('profile.new', JSON.stringify(profile));
        renameSync('profile.new', 'profile');
      });
  });
`)}`;

/** Node.js flags of a gateway that {@link profileTable} can profile. */
export const profilingFlags = ['--import', profileOnSignal];

/** Loads the gateway in rounds, as a comparison does. @returns the table */
export async function profileTable(scenario, gateway, world) {
  const askOneRound = await preparedRounds(scenario, [gateway], world);
  const askedBefore = gateway.asked;
  await signal(gateway, 'profiling');
  const [cpuBefore, threadBefore] = [cpuMicroseconds(gateway.pid), mainThreadMicroseconds(gateway.pid)];
  const samples = [];
  for (let turn = 0; turn < world.rounds; turn += 1) samples.push(await askOneRound(gateway));
  const threadUs = mainThreadMicroseconds(gateway.pid) - threadBefore;
  const cpuUs = cpuMicroseconds(gateway.pid) - cpuBefore;
  const profile = JSON.parse(readFileSync(await signal(gateway, 'profile'), 'utf8'));
  await world.service.control('setLatency', 0);
  const requests = gateway.asked - askedBefore;
  const cells = costsOfParts(profile, threadUs, cpuUs).map(([part, us]) => [
    ...[part, (us / requests).toFixed(2), `${((100 * us) / cpuUs).toFixed(1)} %`],
  ]);
  const sum = (column) => samples.reduce((total, sample) => total + sample[column], 0);
  const costs = [
    `${requests} requests, ${sum('failed')} failed`,
    `for 1,000 requests ${round(sum('upstreamPer1000') / samples.length)} calls to the service`,
    `and ${storeCell(sum('storePer1000') / samples.length)} to the store`,
  ];
  const title = `**Where the time goes: ${scenario.title}** (\`--profile ${scenario.name}\`)`;
  return `${title}\n\n${costs.join('; ')}.\n\n${table(['self time', 'µs/request', 'share'], cells)}`;
}

/** The largest first. The profiler samples wall time, so its shares are applied to the CPU time of the main thread. */
function costsOfParts(profile, threadUs, cpuUs) {
  const times = [...selfTimes(profile)].sort(([, one], [, other]) => other - one);
  const sumOf = (some) => some.reduce((total, [, us]) => total + us, 0);
  const all = sumOf(times);
  const [many, few] = [true, false].map((isMany) => times.filter(([, us]) => us >= all / 200 === isMany));
  const rows = [...many, [`${few.length} others`, sumOf(few)]].map(([part, us]) => [part, (us / all) * threadUs]);
  return [...rows, ['other threads (store, garbage collection, compiler)', cpuUs - threadUs], ['all', cpuUs]];
}

async function signal({ pid, directory }, answer) {
  const file = join(directory, answer);
  rmSync(file, { force: true });
  process.kill(pid, 'SIGWINCH');
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20));
  return file;
}

/** Sampled microseconds by part. */
function selfTimes({ nodes, samples, timeDeltas }) {
  const partOfFrame = new Map(nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]));
  const times = new Map();
  for (const [n, id] of samples.entries()) {
    const part = partOfFrame.get(id);
    if (part !== undefined) times.set(part, (times.get(part) ?? 0) + timeDeltas[n]);
  }
  return times;
}

/** The part that a frame belongs to; undefined for idle time. */
function partOf({ functionName, url, lineNumber, columnNumber }) {
  if (functionName === '(idle)') return undefined;
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (functionName === '(program)') return 'Node.js, native code';
  if (!url.startsWith('file:')) return 'Node.js';
  const path = fileURLToPath(url);
  const source = mapOf(path)?.findEntry(lineNumber, columnNumber).originalSource ?? path;
  const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source) ?? [];
  if (name !== undefined) return name;
  const [, room] =
    /(?:^|\/)src\/(?:([^/]+)\/)?[^/]+$/.exec(source.replace(/(\/src\/[^/]+)\/.+\/([^/]+)$/, '$1/$2')) ?? [];
  return `src/${room ?? ''}`;
}

const maps = new Map();

/** The source map that the build writes beside a file; undefined without one. */
function mapOf(path) {
  if (!maps.has(path)) {
    const file = `${path}.map`;
    maps.set(path, existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : undefined);
  }
  return maps.get(path);
}
