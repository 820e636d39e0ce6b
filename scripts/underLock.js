import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * Runs `task` while no other process of this machine runs one under the same lock. The lock is a file that names its owner,
 * `<process id>-<uuid>`, so that one left by a killed process can be told and removed. A wait of more than 2 s is explained.
 */
export async function underLock(lock, task) {
  await mkdir(dirname(lock), { recursive: true });
  const name = `${process.pid}-${randomUUID()}`;
  for (let tries = 0; !(await take(lock, name)); tries += 1) {
    if (tries === 40) await explainWait(lock);
    await wait(50);
  }
  try {
    return await task();
  } finally {
    await rm(lock, { force: true });
  }
}

async function take(lock, name) {
  const owner = await ownerOf(lock);
  if (owner !== undefined) {
    if (!isAlive(owner)) await removeLeft(lock, owner);
    return false;
  }
  // A link, because the lock must never be seen without the name of its owner.
  const own = `${lock}.${name}`;
  await writeFile(own, name);
  const isTaken = await isNew(link(own, lock));
  await rm(own);
  return isTaken;
}

/** Only one process at a time can create `removal`, so none removes a lock that another one has taken since. */
async function removeLeft(lock, owner) {
  const removal = `${lock}.${owner}.removal`;
  if (!(await isNew(writeFile(removal, '', { flag: 'wx' })))) return;
  if ((await ownerOf(lock)) === owner) await rm(lock, { force: true });
  await rm(removal);
}

async function explainWait(lock) {
  const [pid] = (await ownerOf(lock))?.split('-') ?? [];
  if (!pid) return;
  console.error(`Waiting for process ${pid}, which holds ${lock}. If that is another program, delete the file.`);
}

function ownerOf(lock) {
  return readFile(lock, 'utf8').catch((error) => {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  });
}

/** Whether a file was created: false when it was there already. */
function isNew(creation) {
  return creation.then(
    () => true,
    (error) => {
      if (error.code !== 'EEXIST') throw error;
      return false;
    },
  );
}

function isAlive(owner) {
  const pid = Number.parseInt(owner, 10);
  try {
    process.kill(pid, 0);
    // Container restarts reuse low ids: our own id in a file that we did not write is a dead process's.
    return pid !== process.pid;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
