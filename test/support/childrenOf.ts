import { readdir, readFile } from 'node:fs/promises';

/** The process ids of the child processes of `pid` (Linux). */
export async function childrenOf(pid: number): Promise<number[]> {
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const parents = await Promise.all(
    processes.map(async (name) => {
      const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
      // the fields after the command name, which is in parentheses and may itself contain any characters
      const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return { pid: Number(name), parent: Number(parent) };
    }),
  );
  return parents.filter(({ parent }) => parent === pid).map((child) => child.pid);
}
