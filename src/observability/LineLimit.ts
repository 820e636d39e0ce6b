export interface LimitedLine {
  /** Equal for equal lines. */
  readonly key: string;
  readonly requestId: string;
  readonly write: (fields: object) => void;
  /** The fields of this line alone, besides its request id. */
  readonly own?: object;
  /** The fields that equal lines have in common. */
  readonly shared: () => object;
  /** What is left of the line when too many different ones come. A line without it is only merged with equal ones. */
  readonly general?: object | undefined;
}

/** A line that was written, or merged, within the last second, and those that have come since. */
interface Open {
  line: LimitedLine;
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
  readonly #open = new Map<string, Open>();
  /** The places that are taken. */
  #taken = 0;
  #timer: NodeJS.Timeout | undefined;

  pass(line: LimitedLine): void {
    this.#timer ??= setInterval(() => this.#tick(), windowMs).unref();
    if (this.#open.has(line.key)) this.#merge(line);
    else if (line.general !== undefined && this.#taken >= places) {
      const shared = { ...line.general, others: true };
      this.#merge({ ...line, key: JSON.stringify(shared), own: {}, shared: () => shared, general: undefined });
    } else {
      if (line.general !== undefined) this.#taken += 1;
      this.#open.set(line.key, { line, count: 0, requestIds: [] });
      writeWhole(line);
    }
  }

  /** Writes what was not written yet. */
  flush(): void {
    for (const open of this.#open.values()) writeAll(open);
    this.#open.clear();
    this.#taken = 0;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    for (const [key, { line, count }] of this.#open) {
      if (count > 0) continue;
      this.#open.delete(key);
      if (line.general !== undefined) this.#taken -= 1;
    }
    if (this.#open.size === 0) this.flush();
    for (const open of this.#open.values()) writeAll(open);
  }

  #merge(line: LimitedLine): void {
    const { count = 0, requestIds = [] } = this.#open.get(line.key) ?? {};
    if (count < maxRequestIds) requestIds.push(line.requestId);
    this.#open.set(line.key, { line, count: count + 1, requestIds });
  }
}

/** Writes a line as it is. */
export function writeWhole({ requestId, write, own, shared }: Omit<LimitedLine, 'key'>): void {
  write({ requestId, ...own, ...shared() });
}

function writeAll(open: Open): void {
  const { line, count, requestIds } = open;
  if (count === 1) writeWhole(line);
  else if (count > 1) line.write({ count, requestIds, ...line.shared() });
  open.count = 0;
  open.requestIds = [];
}
