import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * Runs `task` while no other process of this machine runs one under the same lock. The lock is a file holding its owner's
 * process id, so that one left by a killed process can be told and removed.
 */
export async function underLock(lock, task) {
  await mkdir(dirname(lock), { recursive: true });
  while (!(await take(lock))) await wait(50);
  try {
    return await task();
  } finally {
    await rm(lock, { force: true });
  }
}

async function take(lock) {
  try {
    await writeFile(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const owner = Number(await readFile(lock, 'utf8').catch(() => ''));
  if (owner && !isAlive(owner)) await rm(lock, { force: true });
  return false;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    // Container restarts reuse low ids: our own id in a file that we did not write is a dead process's.
    return pid !== process.pid;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
