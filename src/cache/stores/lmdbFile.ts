import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { endianness } from 'node:os';

/** One of the records that each name a state of the database. */
interface Meta {
  readonly pageSize: number;
  readonly txnId: bigint;
  readonly bootId: bigint;
  /** Bytes of the file, up to the last page used. */
  readonly length: number;
  /** Of the tree of free pages and of the tree of entries. */
  readonly roots: readonly Expected[];
}

/** A page that must be there: `height` 1 is a leaf, and 0 the first of `count` pages of one large value. */
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

/** Pages of each tree that are read in a file that has its full length. */
const maxPages = 2000;
/** How often a database that other processes keep changing is read before it is taken for sound. */
const maxReads = 5;

/**
 * Whether `file` is no LMDB database, or one with a part cut off or overwritten: reading a missing page through LMDB would
 * end the process with a signal. An empty file is sound: it becomes a database. So is a short one that lacks only free
 * pages. Needs no lock: the pages of the newest state do not change.
 */
export function isDamaged(file: string): boolean {
  if (endianness() !== 'LE') return false; // the layout above is that of the usual machines; on others LMDB decides
  const descriptor = openSync(file, 'r');
  try {
    for (let reads = 0; reads < maxReads; reads++) {
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
  const pages = [0, pageSize, pageSize / 2].map((at) => read(descriptor, at, pageHeader + metaBytes));
  if (!pages.slice(0, 2).every(isMarked)) return undefined;
  const [first, second, flushed] = pages.map((page) => page && metaOf(page.subarray(pageHeader), pageSize));
  return first && second && [first, second, ...(flushed && flushed.txnId > 0n ? [flushed] : [])];
}

function isMarked(page: Buffer | undefined): boolean {
  if (page === undefined || (page.readUInt16LE(flagsAt) & metaFlag) === 0) return false;
  return page.readUInt32LE(pageHeader) === magic && page.readUInt16LE(pageHeader + 4) === dataVersion;
}

function metaOf(bytes: Buffer, pageSize: number): Meta {
  const rest = dbsAt + 2 * dbBytes;
  const roots = [dbsAt, dbsAt + dbBytes].flatMap((db) => {
    const page = bytes.readBigUInt64LE(db + 40);
    return page === noPage ? [] : [{ page: Number(page), height: bytes.readUInt16LE(db + 6), count: 1 }];
  });
  return {
    pageSize,
    length: (Number(bytes.readBigUInt64LE(rest)) + 1) * pageSize,
    txnId: bytes.readBigUInt64LE(rest + 8),
    bootId: bytes.readBigUInt64LE(rest + 16),
    roots,
  };
}

/** After a restart of the machine LMDB goes back to the oldest state: pages of the others may not have come to the disk. */
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

/** Level by level: the pages that lead to many others come first. */
function isWhole(descriptor: number, root: Expected, size: number, { pageSize, length }: Meta): boolean {
  const expected = [root];
  for (let looked = 0; looked < maxPages || size < length; looked++) {
    const next = expected[looked];
    if (next === undefined) return true;
    const { page, height, count } = next;
    if ((page + count) * pageSize > size) return false;
    const bytes = read(descriptor, page * pageSize, height === 0 ? pageHeader : pageSize);
    if (bytes === undefined || Number(bytes.readBigUInt64LE(0)) !== page) return false;
    if ((bytes.readUInt16LE(flagsAt) & (kindFlags[Math.min(height, 2)] ?? 0)) === 0) return false;
    const children = height === 0 ? [] : childrenIn(bytes, height);
    if (!children) return false;
    expected.push(...children);
  }
  return true;
}

/** Undefined when the page is not laid out as it should be. */
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
      const [first, count] = [data, data + 16].map((at) => Number(page.readBigUInt64LE(at))) as [number, number];
      children.push({ page: first, height: 0, count });
    }
  }
  return children;
}

function read(descriptor: number, at: number, length: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(length);
  return readSync(descriptor, bytes, 0, length, at) === length ? bytes : undefined;
}
