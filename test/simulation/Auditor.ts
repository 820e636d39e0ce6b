import type { Plan } from './plan.js';
import type { ServiceCall } from './SimulatedService.js';
import type { World } from './World.js';

/** A request to a process. Times are virtual, in milliseconds since the simulation began. */
export interface Asked {
  readonly what: 'read' | 'job' | 'link' | 'forget' | 'watch-job' | 'watch-record';
  readonly node: number;
  readonly life: number;
  /** The number of the taxpayer or job. */
  readonly index: number;
  readonly askedAt: number;
  readonly maxAgeMs?: number;
  /** Longest time of a watch, after which it ends by itself. */
  readonly maxMs?: number;
  readonly key?: string | undefined;
  readonly mark?: string;
  endedAt?: number;
  /** The content of the answer; of a watch, what it showed last. */
  content?: string;
  error?: string;
  replayed?: boolean;
  isStale?: boolean;
}

/** A fault or an intervention that may excuse what a check would otherwise report. */
export interface Disturbance {
  readonly kind: 'crash' | 'pause' | 'jump' | 'store' | 'store-loss' | 'key' | 'forget';
  readonly from: number;
  until: number;
  readonly node?: number;
  readonly taxpayer?: number;
}

export interface Finding {
  readonly check: string;
  readonly at: number;
  readonly what: string;
}

/** Everything that happened so far, as the checks see it. */
export class Auditor {
  readonly calls: ServiceCall[] = [];
  readonly asked: Asked[] = [];
  readonly disturbances: Disturbance[] = [];
  /** When each taxpayer's token was replaced at the service. */
  readonly rotations: { readonly taxpayer: number; readonly at: number }[] = [];
  readonly forgotten: { readonly taxpayer: number; readonly begunAt: number; doneAt?: number }[] = [];
  readonly findings: Finding[] = [];
  /** Whether the fleet has been told to stop. */
  isStopping = false;
  #checks: Checks | undefined;

  constructor(
    readonly world: World,
    readonly plan: Plan,
  ) {}

  use(checks: Checks): void {
    this.#checks = checks;
  }

  find(check: string, what: string): void {
    this.findings.push({ check, at: this.world.now, what });
    this.world.tell('AUDITOR', `${check}: ${what}`);
  }

  callSent(call: ServiceCall): void {
    this.calls.push(call);
    for (const check of this.#checks?.sent ?? []) this.#report(check, check(this, call));
  }

  callArrived(call: ServiceCall): void {
    for (const check of this.#checks?.arrived ?? []) this.#report(check, check(this, call));
  }

  begin(asked: Omit<Asked, 'askedAt'>): Asked {
    const begun = { ...asked, askedAt: this.world.now };
    this.asked.push(begun);
    return begun;
  }

  /** A request was answered, or a watch showed an update. */
  answered(asked: Asked): void {
    for (const check of this.#checks?.answered ?? []) this.#report(check, check(this, asked));
  }

  beforeEnd(): void {
    for (const check of this.#checks?.beforeEnd ?? []) this.#report(check, check(this, undefined));
  }

  atEnd(end: End): void {
    for (const check of this.#checks?.atEnd ?? []) this.#report(check, check(this, end));
  }

  disturb(disturbance: Disturbance): Disturbance {
    this.disturbances.push(disturbance);
    return disturbance;
  }

  /** A disturbance that may have affected the work on `taxpayer` between two times. */
  disturbedBetween(from: number, until: number, taxpayer?: number): Disturbance | undefined {
    return this.disturbances.find(
      (each) => each.until >= from && each.from <= until && (each.taxpayer === undefined || each.taxpayer === taxpayer),
    );
  }

  get skewMs(): number {
    const ahead = this.plan.clocks.map(({ aheadMs }) => aheadMs);
    return Math.max(...ahead) - Math.min(...ahead) + 100;
  }

  #report(check: (...args: never[]) => string | undefined, found: string | undefined): void {
    if (found !== undefined) this.find(check.name, found);
  }
}

/** What is left after the fleet has stopped; each should be zero or empty. */
export interface End {
  readonly timers: number;
  readonly unfinished: readonly Asked[];
  readonly polled: number;
}

type Check<Subject> = (auditor: Auditor, subject: Subject) => string | undefined;

/** The checks by when they run. A check returns what is wrong, in words; undefined when all is well. */
export interface Checks {
  readonly sent: readonly Check<ServiceCall>[];
  readonly arrived: readonly Check<ServiceCall>[];
  readonly answered: readonly Check<Asked>[];
  /** Before the fleet stops. */
  readonly beforeEnd: readonly Check<undefined>[];
  readonly atEnd: readonly Check<End>[];
}
