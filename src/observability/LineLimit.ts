/** Of a line that stands for several: how many, and the ids of the first of these requests. */
export interface Repeats {
  readonly count: number;
  readonly requestIds: readonly string[];
}

type Write = (repeats?: Repeats) => void;

export interface LimitedLine {
  /** Equal for equal lines. */
  readonly key: string;
  readonly requestId: string;
  readonly write: Write;
  /** What is left of the line when too many different ones come. A line without it is only merged with equal ones. */
  readonly general?: { readonly key: string; readonly write: Write };
}

/** A line that was written within the last second, and those that have come since. */
interface Open extends Pick<LimitedLine, 'general'> {
  write: Write;
  count: number;
  requestIds: string[];
}

const windowMs = 1000;
const maxOpen = 2000;
const maxRequestIds = 20;
/** How many different lines may be written at once, and how many more each second. */
const burst = 30;
const perSecond = 4;

/**
 * Keeps floods out of the log. The first of equal lines is written at once; those that follow are merged, once a second, into
 * one. When too many different lines come, they are merged into general ones. So no line is lost: each stands for as many as
 * its `count` says; without `count`, for one.
 */
export class LineLimit {
  readonly #open = new Map<string, Open>();
  #credit = burst;
  #timer: NodeJS.Timeout | undefined;

  pass({ key, requestId, write, general }: LimitedLine): void {
    this.#timer ??= setInterval(() => this.#tick(), windowMs).unref();
    const open = this.#open.get(key);
    if (open !== undefined) add(open, write, 1, [requestId]);
    else if (general !== undefined && this.#credit < 1) this.#merge(general, 1, [requestId]);
    else {
      if (general !== undefined) this.#credit -= 1;
      if (this.#open.size >= maxOpen) this.flush();
      this.#open.set(key, { write, count: 0, requestIds: [], ...(general && { general }) });
      write();
    }
  }

  /** Writes what was not written yet. */
  flush(): void {
    for (const open of this.#open.values()) writeAll(open);
    this.#open.clear();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    this.#credit = Math.min(burst, this.#credit + perSecond);
    for (const [key, open] of [...this.#open]) {
      if (open.count === 0) this.#open.delete(key);
      else if (open.general === undefined || this.#credit >= 1) {
        if (open.general !== undefined) this.#credit -= 1;
        writeAll(open);
      } else {
        this.#open.delete(key);
        this.#merge(open.general, open.count, open.requestIds);
      }
    }
    if (this.#open.size === 0 && this.#credit === burst) this.flush();
  }

  #merge({ key, write }: NonNullable<LimitedLine['general']>, count: number, requestIds: readonly string[]): void {
    const open = this.#open.get(key) ?? { write, count: 0, requestIds: [] };
    this.#open.set(key, open);
    add(open, write, count, requestIds);
  }
}

function add(open: Open, write: Write, count: number, requestIds: readonly string[]): void {
  if (open.count === 0) open.write = write;
  open.count += count;
  open.requestIds.push(...requestIds.slice(0, maxRequestIds - open.requestIds.length));
}

/** A single line is written whole. */
function writeAll(open: Open): void {
  const { write, count, requestIds } = open;
  if (count === 1) write();
  else if (count > 1) write({ count, requestIds });
  open.count = 0;
  open.requestIds = [];
}
