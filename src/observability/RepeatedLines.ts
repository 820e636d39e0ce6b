/** One line for the log. */
export interface RepeatableLine {
  readonly write: (fields: object) => void;
  /** Equal for equal lines. */
  readonly key: string;
  /** The fields in which they are equal. */
  readonly common: object;
  /** The fields of this line alone. */
  readonly own: { readonly requestId: string; readonly traceId?: string | undefined };
  /** What is left of the line when too many different ones come; a line without it is never merged with others. */
  readonly general?: object | undefined;
}

/** Lines that wait to be written as one. */
interface Group extends Omit<RepeatableLine, 'own' | 'key'> {
  openedAt: number;
  count: number;
  /** Own fields of the first of these lines. */
  own?: RepeatableLine['own'];
  requestIds: string[];
}

type Lines = Pick<Group, 'count' | 'own' | 'requestIds'>;

const windowMs = 1000;
const maxRequestIds = 20;
const maxGroups = 2000;
/** Rate limit of different lines: how many may be written at once, and how many more each second. */
const burst = 30;
const perSecond = 4;

/**
 * Keeps floods out of the log. The first of equal lines is written at once; those that follow are merged, once a second, into
 * one line with their `count` and the first `requestIds`. A single follower is written whole. When too many different lines
 * come, they are merged into general ones. So each line stands for as many as its `count` says; without `count`, for one.
 */
export class RepeatedLines {
  /** By key, in the order in which they were opened. */
  readonly #groups = new Map<string, Group>();
  #timer: NodeJS.Timeout | undefined;
  #credit = burst;
  #creditAt: number;

  /** @param now milliseconds of a monotonic clock */
  constructor(private readonly now: () => number = () => performance.now()) {
    this.#creditAt = now();
  }

  /** Counts a line if others of its `key` wait already; otherwise false, and {@link note} needs its fields. */
  count(key: string, requestId: string): boolean {
    const group = this.#groups.get(key);
    if (group === undefined || group.count === 0) return false;
    group.count += 1;
    if (group.requestIds.length < maxRequestIds) group.requestIds.push(requestId);
    return true;
  }

  note(line: RepeatableLine): void {
    const { key, common, own, general, write } = line;
    const group = this.#groups.get(key);
    if (group !== undefined) fold(group, { count: 1, own, requestIds: [own.requestId] });
    else if (general !== undefined && !this.#spend()) {
      this.#noteGeneral(line, { count: 1, requestIds: [own.requestId] });
    } else {
      this.#open(key, line);
      write({ ...own, ...common });
    }
  }

  /** Writes what was not written yet. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const group of this.#groups.values()) writeCount(group);
    this.#groups.clear();
  }

  #open(key: string, { write, common, general }: Omit<RepeatableLine, 'own' | 'key'>): Group {
    if (this.#groups.size >= maxGroups) this.flush();
    const group: Group = { write, common, ...(general && { general }), openedAt: this.now(), count: 0, requestIds: [] };
    this.#groups.set(key, group);
    this.#timer ??= setTimeout(() => this.#closeOld(), windowMs).unref();
    return group;
  }

  #noteGeneral({ write, general }: Pick<RepeatableLine, 'write' | 'general'>, lines: Lines): void {
    const key = `others ${JSON.stringify(general)}`;
    fold(this.#groups.get(key) ?? this.#open(key, { write, common: { ...general, others: true } }), lines);
  }

  #closeOld(): void {
    this.#timer = undefined;
    const now = this.now();
    for (const [key, group] of [...this.#groups]) {
      if (now - group.openedAt < windowMs) break;
      this.#groups.delete(key);
      if (group.count === 0) continue;
      if (group.general === undefined || this.#spend()) {
        writeCount(group);
        this.#open(key, group); // the flood may go on
      } else this.#noteGeneral(group, group);
    }
    const [oldest] = this.#groups.values();
    if (oldest === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#closeOld(), Math.max(10, oldest.openedAt + windowMs - now)).unref();
  }

  #spend(): boolean {
    const now = this.now();
    this.#credit = Math.min(burst, this.#credit + ((now - this.#creditAt) / 1000) * perSecond);
    this.#creditAt = now;
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }
}

function fold(group: Group, { count, own, requestIds }: Lines): void {
  group.count += count;
  if (own !== undefined) group.own ??= own;
  const room = maxRequestIds - group.requestIds.length;
  if (room > 0) group.requestIds.push(...requestIds.slice(0, room));
}

function writeCount({ write, common, count, own, requestIds }: Group): void {
  if (count === 1 && own !== undefined) write({ ...own, ...common });
  else if (count > 0) write({ count, requestIds, ...common, traceId: undefined }); // not the trace of the timer
}
