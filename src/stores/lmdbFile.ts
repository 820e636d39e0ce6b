import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { endianness } from 'node:os';

/** One of LMDB's meta pages: each describes a committed state of the database. */
interface Meta {
  readonly pageSize: number;
  readonly txnId: bigint;
  readonly bootId: bigint;
  /** Length of the file in bytes, up to the last page used. */
  readonly length: number;
  /** The roots of the tree of free pages and of the tree of entries. */
  readonly roots: readonly Expected[];
}

/** A page that must be there: `height` 1 is a leaf, and 0 the first of `count` pages of one large value. */
interface Expected {
  readonly page: number;
  readonly height: number;
  readonly count: number;
}

// The layout of LMDB's `MDB_page_header`, `MDB_meta` and `MDB_node` as lmdb-js has them, in bytes.
const header = { bytes: 24, flagsAt: 18, lowerAt: 20 };
const meta = { bytes: 160, dbsAt: 24, dbBytes: 48, flag: 8, magic: 0xbeefc0de, version: 2 };
const node = { headerBytes: 8, bigDataFlag: 1 };
const kindFlags = [4, 2, 1]; // the flags of pages by their height: overflow, leaf, branch and above
const noPage = 0xffff_ffff_ffff_ffffn;

const maxPages = 2000; // pages of each tree that are read in a file that has its full length
const maxReads = 5; // how often a database that other processes keep changing is read before it is taken for sound

/**
 * Whether `file` is no LMDB database, or one with a part cut off or overwritten: reading a missing page through LMDB would
 * end the process with a signal. An empty file is sound: it becomes a database. So is a short one that lacks only free
 * pages. Needs no lock: the pages of the newest state do not change.
 */
export function isDamaged(file: string): boolean {
  if (endianness() !== 'LE') return false; // the layout above is little-endian; elsewhere LMDB decides
  const descriptor = openSync(file, 'r');
  try {
    for (let reads = 0; reads < maxReads; reads++) {
      const { size } = fstatSync(descriptor);
      const metas = readMetas(descriptor);
      const inUse = metas && metaInUse(metas);
      if (size === 0 || inUse?.roots.every((root) => isWhole(descriptor, root, size, inUse))) return false;
      const isUnchanged = stateOf(readMetas(descriptor)) === stateOf(metas) && fstatSync(descriptor).size === size;
      if (isUnchanged) return true;
    }
    return false;
  } finally {
    closeSync(descriptor);
  }
}

const stateOf = (metas: readonly Meta[] | undefined): string | undefined => metas?.map(({ txnId }) => txnId).join();

/** The two meta pages that LMDB writes alternately and, if present, the one of the state last flushed to disk. */
function readMetas(descriptor: number): readonly Meta[] | undefined {
  const pageSize = read(descriptor, 0, header.bytes + meta.bytes)?.readUInt32LE(header.bytes + meta.dbsAt) ?? 0;
  if (pageSize < 512 || pageSize > 65_536 || pageSize % 512 !== 0) return undefined;
  const pages = [0, pageSize, pageSize / 2].map((at) => read(descriptor, at, header.bytes + meta.bytes));
  if (!pages.slice(0, 2).every(isMarked)) return undefined;
  const [first, second, flushed] = pages.map((page) => page && metaOf(page.subarray(header.bytes), pageSize));
  return first && second && [first, second, ...(flushed && flushed.txnId > 0n ? [flushed] : [])];
}

function isMarked(page: Buffer | undefined): boolean {
  if (page === undefined || (page.readUInt16LE(header.flagsAt) & meta.flag) === 0) return false;
  return page.readUInt32LE(header.bytes) === meta.magic && page.readUInt16LE(header.bytes + 4) === meta.version;
}

function metaOf(bytes: Buffer, pageSize: number): Meta {
  const rest = meta.dbsAt + 2 * meta.dbBytes;
  const roots = [meta.dbsAt, meta.dbsAt + meta.dbBytes].flatMap((db) => {
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

/** The state that LMDB will use. After a restart of the machine the oldest: pages of newer ones may not be on the disk. */
function metaInUse(metas: readonly Meta[]): Meta | undefined {
  const byAge = metas.toSorted((a, b) => Number(a.txnId - b.txnId));
  const newest = byAge.at(-1);
  const present = presentBootId();
  return present === undefined || newest?.bootId === present ? newest : byAge[0];
}

/** Identifies the current boot of the machine, as lmdb-js does: by the first group of digits of its id. */
export function presentBootId(): bigint | undefined {
  try {
    return BigInt(`0x${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').split('-', 1)[0]}`);
  } catch {
    return undefined; // not Linux
  }
}

/** Whether the tree under `root` is intact. Goes level by level: the pages that lead to many others come first. */
function isWhole(descriptor: number, root: Expected, size: number, { pageSize, length }: Meta): boolean {
  const expected = [root];
  for (let looked = 0; looked < maxPages || size < length; looked++) {
    const next = expected[looked];
    if (next === undefined) return true;
    const { page, height, count } = next;
    if ((page + count) * pageSize > size) return false;
    const bytes = read(descriptor, page * pageSize, height === 0 ? header.bytes : pageSize);
    if (bytes === undefined || Number(bytes.readBigUInt64LE(0)) !== page) return false;
    if ((bytes.readUInt16LE(header.flagsAt) & (kindFlags[Math.min(height, 2)] ?? 0)) === 0) return false;
    const children = height === 0 ? [] : childrenIn(bytes, height);
    if (!children) return false;
    expected.push(...children);
  }
  return true;
}

/** The pages that `page` refers to; undefined when its layout is wrong. */
function childrenIn(page: Buffer, height: number): readonly Expected[] | undefined {
  const children: Expected[] = [];
  for (let n = 0; n < page.readUInt16LE(header.lowerAt) >> 1; n++) {
    const pointer = header.bytes + 2 * n;
    const at = pointer + 2 <= page.length ? header.bytes + page.readUInt16LE(pointer) : page.length;
    if (at + node.headerBytes > page.length) return undefined;
    const flags = page.readUInt16LE(at + 4);
    if (height > 1) {
      children.push({ page: page.readUInt32LE(at) + flags * 2 ** 32, height: height - 1, count: 1 });
    } else if (flags & node.bigDataFlag) {
      const data = at + node.headerBytes + page.readUInt16LE(at + 6);
      if (data + 24 > page.length) return undefined;
      const count = Number(page.readBigUInt64LE(data + 16));
      children.push({ page: Number(page.readBigUInt64LE(data)), height: 0, count });
    }
  }
  return children;
}

function read(descriptor: number, at: number, length: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(length);
  return readSync(descriptor, bytes, 0, length, at) === length ? bytes : undefined;
}
