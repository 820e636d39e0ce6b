// CPU time and memory of a process and its descendants, as Linux counts them.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
const pageBytes = Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' }));

/** CPU time (user and system) of the process tree under `pid`, in microseconds; the resolution is 10 ms. */
export function cpuMicroseconds(pid) {
  const ticks = treeOf(pid).reduce((sum, { fields }) => sum + Number(fields[11]) + Number(fields[12]), 0);
  return (ticks / ticksPerSecond) * 1e6;
}

/** CPU time of the thread that runs JavaScript in the process `pid`, in microseconds. */
export function mainThreadMicroseconds(pid) {
  const [{ fields }] = statOf(`${pid}/task/${pid}`);
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1e6;
}

/** Resident memory of the process tree under `pid`, in megabytes. Pages that processes share count in each. */
export function residentMegabytes(pid) {
  return treeOf(pid).reduce((sum, { fields }) => sum + Number(fields[21]) * pageBytes, 0) / 1e6;
}

function treeOf(pid) {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(Number(name)));
  const tree = all.filter((process) => process.pid === pid);
  for (const { pid: parent } of tree) tree.push(...all.filter((process) => Number(process.fields[1]) === parent));
  return tree;
}

/** The fields after the command name, which may itself hold spaces and parentheses. */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return [{ pid, fields: text.slice(text.lastIndexOf(')') + 2).split(' ') }];
  } catch {
    return []; // ended meanwhile
  }
}
