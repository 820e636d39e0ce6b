import { readdirSync, readlinkSync } from 'node:fs';

/** The ids of the processes whose working directory is `folder` or lies in it (Linux). */
export function processesIn(folder: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return readlinkSync(`/proc/${name}/cwd`).startsWith(folder) ? [Number(name)] : [];
    } catch {
      return []; // no process, or gone
    }
  });
}
