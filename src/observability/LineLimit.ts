import type { Caller } from '../auth/caller.js';
import type { Sealer } from '../cache/sealing.js';
import type { Logger } from './log.js';

/** A line about what somebody asked for. Values are of closed sets, keyed hashes and plain client names. */
export interface Line {
  readonly level: 'info' | 'warn' | 'audit';
  readonly message: string;
  readonly requestId: string;
  /** The fields that equal lines have in common. */
  readonly common: object;
  /** Who asked, and about whom: a keyed hash of each name is logged. Equal lines have these in common, too. */
  readonly caller?: Caller | undefined;
  readonly taxpayer?: string | undefined;
  readonly remoteAddress?: string | undefined;
  /** The fields of this line alone, besides its request id. */
  readonly own?: object;
  /** What is left of the line when too many different ones come. A line without it is only merged with equal ones. */
  readonly general?: object | undefined;
}

/** A line that was written, or merged, within the last second, and those that have come since. */
interface Open {
  line: Line;
  count: number;
  requestIds: string[];
}

const windowMs = 1000;
const maxRequestIds = 20;
/** How many different lines may be told apart at once; those beyond have only what is general of them. */
const places = 12;

/**
 * Keeps floods out of the log. The first of equal lines is written at once; those that follow are merged, once a second, into
 * one with the ids of the first of them. When too many different lines come, they are merged into general ones. So no line is
 * lost: each stands for as many as its `count` says; without `count`, for one.
 */
export class LineLimit {
  readonly #log;
  readonly #open = new Map<string, Open>();
  /** The places that are taken. */
  #taken = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    log: Logger,
    private readonly sealer: Sealer,
    /** Whether lines name addresses: with TRUSTED_PROXIES, as others could all be that of a proxy. */
    private readonly namesAddresses = true,
  ) {
    // No redaction is needed: the lines only have the fields above.
    this.#log = log.child({}, { redact: [] });
  }

  /** Writes the line, or merges it with those that are equal. */
  pass(line: Line): void {
    this.#timer ??= setInterval(() => this.#tick(), windowMs).unref();
    const { message, common, general, requestId } = line;
    const key = JSON.stringify([message, common, line.caller?.key, line.taxpayer, this.#addressIn(line)]);
    if (this.#open.has(key)) this.#merge(key, line);
    else if (general !== undefined && this.#taken >= places) {
      const others = { level: line.level, message, requestId, common: { ...general, others: true } };
      this.#merge(JSON.stringify([message, others.common]), others);
    } else {
      if (general !== undefined) this.#taken += 1;
      this.#open.set(key, { line, count: 0, requestIds: [] });
      this.write(line);
    }
  }

  /** Writes the line as it is. */
  write(line: Line): void {
    this.#write(line, { requestId: line.requestId, ...line.own });
  }

  /** Writes what was not written yet. */
  flush(): void {
    for (const open of this.#open.values()) this.#writeMerged(open);
    this.#open.clear();
    this.#taken = 0;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #addressIn({ remoteAddress }: Line): string | undefined {
    return this.namesAddresses ? remoteAddress : undefined;
  }

  #tick(): void {
    for (const [key, { line, count }] of this.#open) {
      if (count > 0) continue;
      this.#open.delete(key);
      if (line.general !== undefined) this.#taken -= 1;
    }
    if (this.#open.size === 0) this.flush();
    for (const open of this.#open.values()) this.#writeMerged(open);
  }

  #merge(key: string, line: Line): void {
    const { count = 0, requestIds = [] } = this.#open.get(key) ?? {};
    if (count < maxRequestIds) requestIds.push(line.requestId);
    this.#open.set(key, { line, count: count + 1, requestIds });
  }

  #writeMerged(open: Open): void {
    const { line, count, requestIds } = open;
    if (count === 1) this.write(line);
    else if (count > 1) this.#write(line, { count, requestIds });
    open.count = 0;
    open.requestIds = [];
  }

  #write(line: Line, own: object): void {
    const { level, message, common, caller, taxpayer } = line;
    const who = {
      caller: caller && this.sealer.digest('caller', caller.key),
      callerKind: caller?.kind,
      address: this.#addressIn(line),
      taxpayer: taxpayer && this.sealer.digest('taxpayer', taxpayer),
    };
    this.#log[level]({ ...own, ...common, ...who }, message);
  }
}
