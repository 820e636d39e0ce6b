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

/** A line that was written, or merged, within the last second, and those that have come since. */
interface Open {
  write: Write;
  /** Whether it takes one of the places for different lines. */
  readonly takesPlace: boolean;
  count: number;
  requestIds: string[];
}

const windowMs = 1000;
const maxRequestIds = 20;
/** How many different lines may be told apart at once; those beyond have only what is general of them. */
const places = 12;

/**
 * Keeps floods out of the log. The first of equal lines is written at once; those that follow are merged, once a second, into
 * one. When too many different lines come, they are merged into general ones. So no line is lost: each stands for as many as
 * its `count` says; without `count`, for one.
 */
export class LineLimit {
  readonly #open = new Map<string, Open>();
  #taken = 0;
  #timer: NodeJS.Timeout | undefined;

  pass(line: LimitedLine): void {
    this.#timer ??= setInterval(() => this.#tick(), windowMs).unref();
    const isOneTooMany = !this.#open.has(line.key) && line.general !== undefined && this.#taken >= places;
    const { key, write } = isOneTooMany && line.general ? line.general : line;
    const open = this.#open.get(key);
    if (open !== undefined) add(open, write, line.requestId);
    else if (isOneTooMany) this.#open.set(key, { write, takesPlace: false, count: 1, requestIds: [line.requestId] });
    else {
      const takesPlace = line.general !== undefined;
      if (takesPlace) this.#taken += 1;
      this.#open.set(key, { write, takesPlace, count: 0, requestIds: [] });
      write();
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
    for (const [key, open] of this.#open) {
      if (open.count === 0) {
        this.#open.delete(key);
        if (open.takesPlace) this.#taken -= 1;
      } else writeAll(open);
    }
    if (this.#open.size === 0) this.flush();
  }
}

function add(open: Open, write: Write, requestId: string): void {
  if (open.count === 0) open.write = write;
  open.count += 1;
  if (open.requestIds.length < maxRequestIds) open.requestIds.push(requestId);
}

/** A single line is written whole. */
function writeAll(open: Open): void {
  const { write, count, requestIds } = open;
  if (count === 1) write();
  else if (count > 1) write({ count, requestIds });
  open.count = 0;
  open.requestIds = [];
}
