import { GatewayError } from '../errors/errors.js';
import type { Holder, Release } from './Ledger.js';

export interface FairQueueOptions {
  /** What waits here, in the plural, as refusals name it. */
  readonly things: string;
  /** Most at once for one holder. Callers without an identity are bounded by `perProcess` alone. */
  readonly perHolder: number;
  readonly perProcess: number;
  /** Most that one holder, or all callers without an identity together, may have waiting. */
  readonly maxWaiting: number;
  /** Longest wait for a place, in milliseconds. */
  readonly maxWaitMs: number;
  /** Told of everybody who enters, waits or is refused. */
  readonly onEnter?: (holder: Holder) => void;
  /** Whether holders are in each other's way: each then has a sixteenth of its places. */
  readonly isContended?: () => boolean;
}

interface Waiter {
  readonly admit: (release: Release) => void;
}

interface Account {
  readonly holder: Holder;
  /** While holders are not in each other's way. */
  readonly most: number;
  running: number;
  /** In the order of arrival. */
  readonly waiting: Set<Waiter>;
  /** Whether it stands in the round. */
  isDue: boolean;
}

/**
 * A bounded number of places, of which no holder gets more than its share. Who finds none waits; free places go to the
 * holders in turn, so that a holder with many waiting delays the others by at most one place each.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  /** Of those who have something running or waiting. */
  readonly #accounts = new Map<Holder, Account>();
  /** Accounts that have somebody waiting and may run one more, in the order of their turns. */
  readonly #round: Account[] = [];
  #running = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /**
   * Takes a place, at once when one is free. What it returns gives the place back.
   *
   * @throws GatewayError RATE_LIMITED when too many of the holder wait already, or the wait took too long
   */
  enter(holder: Holder): Release | Promise<Release> {
    this.#options.onEnter?.(holder);
    const account = this.#accountOf(holder);
    const isFree = this.#running < this.#options.perProcess && this.#hasShare(account);
    // Whoever came first goes first: a place that is free while others wait is on its way to one of them.
    if (isFree && account.waiting.size === 0) return this.#run(account);
    if (account.waiting.size >= this.#options.maxWaiting) throw this.#refused(account);
    return this.#wait(account);
  }

  /** Does `work` in a place of its own. @throws as {@link enter}, or whatever `work` throws */
  async run<T>(holder: Holder, work: () => T | Promise<T>): Promise<T> {
    const entering = this.enter(holder);
    const leave = entering instanceof Promise ? await entering : entering;
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** How many places are taken. */
  get running(): number {
    return this.#running;
  }

  #accountOf(holder: Holder): Account {
    const known = this.#accounts.get(holder);
    if (known !== undefined) return known;
    const { perHolder, perProcess } = this.#options;
    const most = holder === undefined ? perProcess : perHolder;
    const account: Account = { holder, most, running: 0, waiting: new Set(), isDue: false };
    this.#accounts.set(holder, account);
    return account;
  }

  #run(account: Account): Release {
    this.#running += 1;
    account.running += 1;
    let isRunning = true;
    return () => {
      if (!isRunning) return;
      isRunning = false;
      this.#running -= 1;
      account.running -= 1;
      this.#schedule(account);
      this.#admitNext();
      this.#forgetIfIdle(account);
    };
  }

  #wait(account: Account): Promise<Release> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        account.waiting.delete(waiter);
        this.#forgetIfIdle(account);
      };
      const waiter: Waiter = {
        admit: (release) => {
          leave();
          resolve(release);
        },
      };
      const timer = setTimeout(() => {
        leave();
        reject(this.#refused(account));
      }, this.#options.maxWaitMs);
      account.waiting.add(waiter);
      this.#schedule(account);
    });
  }

  #schedule(account: Account): void {
    if (account.isDue || account.waiting.size === 0 || !this.#hasShare(account)) return;
    account.isDue = true;
    this.#round.push(account);
  }

  #admitNext(): void {
    while (this.#running < this.#options.perProcess) {
      const account = this.#round.shift();
      if (account === undefined) return;
      account.isDue = false;
      const [waiter] = account.waiting;
      if (waiter === undefined || !this.#hasShare(account)) continue;
      const release = this.#run(account);
      waiter.admit(release);
      this.#schedule(account);
    }
  }
  /** One place is always left, so that every end of a holder's work admits the next of it. */
  #hasShare({ running, most }: Account): boolean {
    if (running === 0) return true;
    return running < most && (running < most / 16 || !this.#options.isContended?.());
  }

  #forgetIfIdle({ holder, running, waiting }: Account): void {
    if (running === 0 && waiting.size === 0) this.#accounts.delete(holder);
  }

  #refused({ holder, most }: Account): GatewayError {
    const { things, maxWaiting } = this.#options;
    return new GatewayError('RATE_LIMITED', `At most ${most} ${things} at once per caller, and ${maxWaiting} waiting`, {
      retryAfterSeconds: 1,
      httpStatus: 429,
      refused: { holder },
    });
  }
}
