import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { endianness } from 'node:os';

/** One of the three records that each name a state of the database. */
interface Meta {
  readonly isMarked: boolean;
  readonly pageSize: number;
  readonly txnId: bigint;
  readonly bootId: bigint;
  /** Bytes of the file, up to the last page used. */
  readonly length: number;
  /** The root pages of the trees of the free pages and of the entries, with the heights of those. */
  readonly roots: readonly Expected[];
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
const metaFlag = 8;
/** The flags of pages by their height: overflow, leaf, branch and above. */
const kindFlags = [4, 2, 1];
const bigDataFlag = 1;
const noPage = 0xffff_ffff_ffff_ffffn;

/** Pages looked at in a file that has its full length. */
const maxPages = 2000;
/** How often a database that other processes keep changing is read before it is taken for sound. */
const maxLooks = 5;

/**
 * Whether `file` is no LMDB database, or one with a part cut off or overwritten: reading a missing page through LMDB would
 * end the process with a signal. An empty file is sound, it becomes a database.
 *
 * Reads the pages of both trees, at most 2000 of each unless the file is too short. (A short one is sound when its last
 * pages are free ones that were never written.) Needs no lock: the pages of the newest state do not change.
 */
export function isDamaged(file: string): boolean {
  if (endianness() !== 'LE') return false; // the layout above is that of the usual machines; on others LMDB decides
  const descriptor = openSync(file, 'r');
  try {
    for (let look = 0; look < maxLooks; look++) {
      const { size } = fstatSync(descriptor);
      const metas = readMetas(descriptor);
      const meta = metas && metaInUse(metas);
      if (size === 0 || meta?.roots.every((root) => isWhole(descriptor, root, size, meta))) return false;
      const isUnchanged = stateOf(readMetas(descriptor)) === stateOf(metas) && fstatSync(descriptor).size === size;
      if (isUnchanged) return true;
    }
    return false;
  } finally {
    closeSync(descriptor);
  }
}

function stateOf(metas: readonly Meta[] | undefined): string | undefined {
  return metas?.map(({ txnId }) => txnId).join();
}

/** The two that are written in turn and, where there is one, that of the state last forced to the disk. */
function readMetas(descriptor: number): readonly Meta[] | undefined {
  const pageSize = read(descriptor, 0, pageHeader + metaBytes)?.readUInt32LE(pageHeader + dbsAt) ?? 0;
  if (pageSize < 512 || pageSize > 65_536 || pageSize % 512 !== 0) return undefined;
  const [first, second, flushed] = [0, pageSize, pageSize / 2].map((at) => readMeta(descriptor, at, pageSize));
  if (!first?.isMarked || !second?.isMarked) return undefined;
  return [first, second, ...(flushed && flushed.txnId > 0n ? [flushed] : [])];
}

function readMeta(descriptor: number, at: number, pageSize: number): Meta | undefined {
  const page = read(descriptor, at, pageHeader + metaBytes);
  if (page === undefined) return undefined;
  const bytes = page.subarray(pageHeader);
  const rest = dbsAt + 2 * dbBytes;
  return {
    pageSize,
    isMarked:
      (page.readUInt16LE(flagsAt) & metaFlag) !== 0 &&
      bytes.readUInt32LE(0) === magic &&
      (bytes.readUInt32LE(4) & 0xffff) === dataVersion,
    length: (Number(bytes.readBigUInt64LE(rest)) + 1) * pageSize,
    txnId: bytes.readBigUInt64LE(rest + 8),
    bootId: bytes.readBigUInt64LE(rest + 16),
    roots: [dbsAt, dbsAt + dbBytes]
      .map((db) => ({ page: bytes.readBigUInt64LE(db + 40), height: bytes.readUInt16LE(db + 6), count: 1 }))
      .flatMap((root) => (root.page === noPage ? [] : [{ ...root, page: Number(root.page) }])),
  };
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

function isWhole(descriptor: number, root: Expected, size: number, { pageSize, length }: Meta): boolean {
  const expected = [root];
  // Level by level: the pages that lead to many others come first.
  for (let looked = 0; looked < maxPages || size < length; looked++) {
    const next = expected[looked];
    if (next === undefined) return true;
    const children = (next.page + next.count) * pageSize <= size && childrenOf(descriptor, next, pageSize);
    if (!children) return false;
    expected.push(...children);
  }
  return true;
}

/** What the page says must be there; undefined when it is not what was expected. */
function childrenOf(descriptor: number, { page, height }: Expected, pageSize: number) {
  const bytes = read(descriptor, page * pageSize, height === 0 ? pageHeader : pageSize);
  if (bytes === undefined || Number(bytes.readBigUInt64LE(0)) !== page) return undefined;
  if ((bytes.readUInt16LE(flagsAt) & (kindFlags[Math.min(height, 2)] ?? 0)) === 0) return undefined;
  return height === 0 ? [] : childrenIn(bytes, height);
}

function childrenIn(page: Buffer, height: number): readonly Expected[] | undefined {
  const children: Expected[] = [];
  for (let n = 0; n < page.readUInt16LE(lowerAt) >> 1; n++) {
    const pointer = pageHeader + 2 * n;
    const node = pointer + 2 <= page.length ? pageHeader + page.readUInt16LE(pointer) : page.length;
    if (node + nodeHeader > page.length) return undefined;
    const flags = page.readUInt16LE(node + 4);
    if (height > 1) {
      children.push({ page: page.readUInt32LE(node) + flags * 2 ** 32, height: height - 1, count: 1 });
    } else if (flags & bigDataFlag) {
      const data = node + nodeHeader + page.readUInt16LE(node + 6);
      if (data + 24 > page.length) return undefined;
      const [first, count] = [page.readBigUInt64LE(data), page.readBigUInt64LE(data + 16)].map(Number);
      children.push({ page: first ?? 0, height: 0, count: count ?? 0 });
    }
  }
  return children;
}

function read(descriptor: number, at: number, length: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(length);
  return readSync(descriptor, bytes, 0, length, at) === length ? bytes : undefined;
}
