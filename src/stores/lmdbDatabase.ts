import { statSync } from 'node:fs';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { makeLmdbDirectory, setAside, setAsideDamaged, textOf } from './lmdbDirectory.js';

export type Database = RootDatabase<Buffer, string>;

/** After this many writes the driver commits before the turn of the event loop is over. Its types lack the option. */
const commitsOfATurn = { txnStartThreshold: 500 };

/** What LMDB says of a file that is no database, of another version, or damaged. */
const damage = /MDB_(CORRUPTED|INVALID|VERSION_MISMATCH|PAGE_NOTFOUND)/;

/** Opens or creates the database in the directory `path`. Sets a damaged one aside and creates a new one. May throw. */
export function openOrCreate(path: string, onSetAside?: (name: string) => void): Database {
  setAsideDamaged(path, onSetAside);
  makeLmdbDirectory(path);
  const inode = inodeIn(path);
  try {
    return openDatabase(path);
  } catch (error) {
    if (!damage.test(textOf(error))) throw error;
    setAside(path, () => inodeIn(path) === inode, onSetAside);
    makeLmdbDirectory(path);
    return openDatabase(path);
  }
}

/** Opens the database that is in the directory `path`. May throw. */
export function openDatabase(path: string): Database {
  const db = open<Buffer, string>({
    ...commitsOfATurn,
    path,
    noSubdir: false,
    encoding: 'binary',
    useVersions: true,
    separateFlushed: true,
    eventTurnBatching: false, // with it, a failed commit rejects a promise that we cannot reach
  });
  try {
    for (const reverse of [false, true]) db.getRange({ limit: 1, reverse }).asArray; // throws when it is damaged
    return db;
  } catch (error) {
    void db.close().catch(() => undefined);
    throw error;
  }
}

/** The inode of the database file, which changes when the file is replaced; undefined when there is none. */
export const inodeIn = (path: string): number | undefined =>
  statSync(join(path, 'data.mdb'), { throwIfNoEntry: false })?.ino;
