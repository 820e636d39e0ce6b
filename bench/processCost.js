// CPU time and memory of a process, as Linux counts them.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
const pageBytes = Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' }));

/** CPU time (user and system) of the process `pid`, in microseconds; the resolution is 10 ms. */
export function cpuMicroseconds(pid) {
  return microsecondsIn(pid);
}

/** CPU time of the thread that runs JavaScript in the process `pid`, in microseconds. */
export function mainThreadMicroseconds(pid) {
  return microsecondsIn(`${pid}/task/${pid}`);
}

/** Resident memory of the process `pid`, in megabytes. */
export function residentMegabytes(pid) {
  return (Number(fieldsOf(pid)[21]) * pageBytes) / 1e6;
}

function microsecondsIn(path) {
  const fields = fieldsOf(path);
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1e6;
}

/** The fields after the command name, which may itself hold spaces and parentheses. */
function fieldsOf(path) {
  const text = readFileSync(`/proc/${path}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}
