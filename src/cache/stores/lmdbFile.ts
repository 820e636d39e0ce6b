import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { endianness } from 'node:os';

/** One of the three records that each name a state of the database. */
interface Meta {
  readonly txnId: bigint;
  readonly bootId: bigint;
  /** Bytes of the file, up to the last page used. */
  readonly length: number;
  /** The trees of the free pages and of the entries. */
  readonly trees: readonly Tree[];
}

interface Tree {
  readonly depth: number;
  readonly root: bigint;
}

/** A page that is to be there: `height` 1 is a leaf, and 0 the first of `count` pages of one large value. */
interface Expected {
  readonly page: number;
  readonly height: number;
  readonly count: number;
}

// The layout of LMDB's `MDB_page_header`, `MDB_meta`, `MDB_db` and `MDB_node` as lmdb-js has them, in bytes.
const pageHeader = 24;
const flagsAt = 18;
const lowerAt = 20;
const metaBytes = 160;
const dbsAt = 24;
const dbBytes = 48;
const nodeHeader = 8;

const magic = 0xbeefc0de;
const dataVersion = 2;
const branchFlag = 1;
const leafFlag = 2;
const overflowFlag = 4;
const metaFlag = 8;
const bigDataFlag = 1;
const noPage = 0xffff_ffff_ffff_ffffn;

/** Pages looked at in a file that has its full length. */
const maxPages = 2000;
/** Looks at a database that other processes change meanwhile, before it is taken for sound. */
const maxLooks = 5;

/**
 * Whether `file` is no LMDB database, or one with a part cut off or overwritten. LMDB's own look comes too late: a page that is
 * not there ends the process with a signal. An empty file is sound: it becomes a database.
 *
 * Looks at both trees, at 2000 pages of each at most unless the file is too short. (A short one is sound when its last pages are
 * free ones that were never written.) Needs no lock: the pages of the newest state do not change as long as it is the newest.
 *
 * @throws Error when the file cannot be read
 */
export function isDamaged(file: string): boolean {
  if (endianness() !== 'LE') return false; // the layout below is that of the usual machines; on others LMDB decides
  const descriptor = openSync(file, 'r');
  try {
    for (let look = 0; look < maxLooks; look++) {
      const database = new DatabaseFile(descriptor);
      if (database.isSound()) return false;
      if (database.isUnchanged()) return true;
    }
    return false;
  } finally {
    closeSync(descriptor);
  }
}

class DatabaseFile {
  readonly #descriptor: number;
  readonly #size: number;
  readonly #pageSize: number;
  readonly #metas: readonly Meta[] | undefined;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    this.#size = fstatSync(descriptor).size;
    this.#pageSize = this.#read(0, pageHeader + metaBytes)?.readUInt32LE(pageHeader + dbsAt) ?? 0;
    this.#metas = this.#readMetas();
  }

  isSound(): boolean {
    if (this.#size === 0) return true;
    const meta = this.#metas && metaInUse(this.#metas);
    if (meta === undefined) return false;
    return meta.trees.every((tree) => this.#isWhole(tree, this.#size < meta.length));
  }

  /** Whether nobody has written a newer state since. */
  isUnchanged(): boolean {
    const newest = (metas: readonly Meta[] | undefined) => metas?.map(({ txnId }) => txnId).join();
    return newest(this.#readMetas()) === newest(this.#metas) && fstatSync(this.#descriptor).size === this.#size;
  }

  /** The two that are written in turn and, where there is one, that of the state last forced to the disk. */
  #readMetas(): readonly Meta[] | undefined {
    const pageSize = this.#pageSize;
    if (pageSize < 512 || pageSize > 65_536 || pageSize % 512 !== 0) return undefined;
    const first = this.#readMeta(0);
    const second = this.#readMeta(pageSize);
    const flushed = this.#readMeta(pageSize / 2, false);
    return first && second && [first, second, ...(flushed && flushed.txnId > 0n ? [flushed] : [])];
  }

  #readMeta(at: number, isMarked = true): Meta | undefined {
    const page = this.#read(at, pageHeader + metaBytes);
    if (page === undefined) return undefined;
    const bytes = page.subarray(pageHeader);
    const marked =
      (page.readUInt16LE(flagsAt) & metaFlag) !== 0 &&
      bytes.readUInt32LE(0) === magic &&
      (bytes.readUInt32LE(4) & 0xffff) === dataVersion;
    if (isMarked && !marked) return undefined;
    const rest = dbsAt + 2 * dbBytes;
    return {
      length: (Number(bytes.readBigUInt64LE(rest)) + 1) * this.#pageSize,
      txnId: bytes.readBigUInt64LE(rest + 8),
      bootId: bytes.readBigUInt64LE(rest + 16),
      trees: [dbsAt, dbsAt + dbBytes].map((db) => ({
        depth: bytes.readUInt16LE(db + 6),
        root: bytes.readBigUInt64LE(db + 40),
      })),
    };
  }

  #isWhole({ root, depth }: Tree, isShort: boolean): boolean {
    if (root === noPage) return true;
    const expected: Expected[] = [{ page: Number(root), height: depth, count: 1 }];
    // Level by level: the pages that lead to many others come first.
    for (let looked = 0; looked < maxPages || isShort; looked++) {
      const next = expected[looked];
      if (next === undefined) return true;
      const children = this.#childrenOf(next);
      if (children === undefined) return false;
      expected.push(...children);
    }
    return true;
  }

  /** What the page says must be there; undefined when it is not what was expected. */
  #childrenOf({ page, height, count }: Expected): readonly Expected[] | undefined {
    if ((page + count) * this.#pageSize > this.#size) return undefined;
    const bytes = this.#read(page * this.#pageSize, height === 0 ? pageHeader : this.#pageSize);
    const kind = height === 0 ? overflowFlag : height === 1 ? leafFlag : branchFlag;
    if (bytes === undefined || Number(bytes.readBigUInt64LE(0)) !== page) return undefined;
    if ((bytes.readUInt16LE(flagsAt) & kind) === 0) return undefined;
    return height === 0 ? [] : childrenIn(bytes, height);
  }

  #read(at: number, length: number): Buffer | undefined {
    const bytes = Buffer.allocUnsafe(length);
    return readSync(this.#descriptor, bytes, 0, length, at) === length ? bytes : undefined;
  }
}

/** After a restart of the machine LMDB goes back to the oldest state: of the others not all pages may have come to the disk. */
function metaInUse(metas: readonly Meta[]): Meta | undefined {
  const byAge = metas.toSorted((a, b) => Number(a.txnId - b.txnId));
  const newest = byAge.at(-1);
  const present = presentBootId();
  return present === undefined || newest?.bootId === present ? newest : byAge[0];
}

/** As lmdb-js reads it: the first group of the digits. */
function presentBootId(): bigint | undefined {
  try {
    return BigInt(`0x${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').split('-', 1)[0]}`);
  } catch {
    return undefined; // no Linux
  }
}

function childrenIn(page: Buffer, height: number): readonly Expected[] | undefined {
  const count = page.readUInt16LE(lowerAt) >> 1;
  const children: Expected[] = [];
  for (let n = 0; n < count; n++) {
    const pointer = pageHeader + 2 * n;
    const node = pointer + 2 <= page.length ? pageHeader + page.readUInt16LE(pointer) : page.length;
    if (node + nodeHeader > page.length) return undefined;
    const flags = page.readUInt16LE(node + 4);
    if (height > 1) {
      children.push({ page: page.readUInt32LE(node) + flags * 2 ** 32, height: height - 1, count: 1 });
    } else if (flags & bigDataFlag) {
      const data = node + nodeHeader + page.readUInt16LE(node + 6);
      if (data + 24 > page.length) return undefined;
      const first = Number(page.readBigUInt64LE(data));
      children.push({ page: first, height: 0, count: Number(page.readBigUInt64LE(data + 16)) });
    }
  }
  return children;
}
