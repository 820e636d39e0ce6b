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

/** Lines that were not written by themselves. */
interface Group extends Omit<RepeatableLine, 'own' | 'key'> {
  openedAt: number;
  count: number;
  /** Of the first of them. */
  own?: RepeatableLine['own'];
  requestIds: string[];
}

type Lines = Pick<Group, 'count' | 'own' | 'requestIds'>;

const windowMs = 1000;
const maxRequestIds = 20;
const maxGroups = 2000;
/** Different lines that may be written at once, and how many more each second. */
const burst = 30;
const perSecond = 4;

/**
 * Keeps a flood out of the log. The first of equal lines is written at once; those that follow are told once a second by a
 * line with their `count` and the first of their `requestIds`; a single one is written whole. When too many different lines
 * come, they are told together. So each line stands for as many as its `count` says, and without one for itself.
 */
export class RepeatedLines {
  /** In the order in which their seconds began. */
  readonly #groups = new Map<string, Group>();
  #timer: NodeJS.Timeout | undefined;
  #credit = burst;
  #creditAt: number;

  /** @param now milliseconds of a monotonic clock */
  constructor(private readonly now: () => number = () => performance.now()) {
    this.#creditAt = now();
  }

  /** Counts a line with those of its `key`; false when its fields are needed, for {@link note}. */
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
  else if (count > 0) write({ count, requestIds, ...common, traceId: undefined }); // not that of the timer
}
