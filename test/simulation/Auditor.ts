import { checks } from './checks.js';
import type { Plan } from './plan.js';
import type { ServiceCall } from './SimulatedService.js';
import type { World } from './World.js';

/** A request to a process. Times are virtual, in milliseconds since the simulation began. */
export interface Asked {
  readonly what: 'read' | 'job' | 'link' | 'watch-job' | 'watch-record';
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
  isStale?: boolean;
}

/** A fault or an intervention that may excuse what a check would otherwise report. */
export interface Disturbance {
  readonly kind: 'crash' | 'pause' | 'store' | 'store-loss' | 'key' | 'forget';
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

  constructor(
    readonly world: World,
    readonly plan: Plan,
  ) {}

  find(check: string, what: string): void {
    this.findings.push({ check, at: this.world.now, what });
    this.world.tell('AUDITOR', `${check}: ${what}`);
  }

  /** Runs the checks of this moment on its subject. */
  check<When extends keyof Checks>(when: When, subject: Parameters<Checks[When][number]>[1]): void {
    for (const check of checks[when]) {
      const found = check(this, subject as never);
      if (found !== undefined) this.find(check.name, found);
    }
  }

  /** Whether there was such a disturbance, whenever that was. */
  had(...kinds: readonly Disturbance['kind'][]): boolean {
    return this.disturbances.some(({ kind }) => kinds.includes(kind));
  }

  /** Whether the taxpayer's token was replaced at the service since then. */
  rotated(index: number, since = 0): boolean {
    return this.rotations.some(({ taxpayer, at }) => taxpayer === index && at >= since);
  }

  /** The calls about a taxpayer's record, or a job, whose valid answer reached a process. */
  answersOf(endpoint: ServiceCall['endpoint'], index: number) {
    return this.calls.filter(
      (call): call is ServiceCall & { readonly deliveredAt: number } =>
        call.endpoint === endpoint &&
        call.index === index &&
        call.deliveredAt !== undefined &&
        call.content !== undefined,
    );
  }

  begin(asked: Omit<Asked, 'askedAt'>): Asked {
    const begun = { ...asked, askedAt: this.world.now };
    this.asked.push(begun);
    return begun;
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
  /** A request was answered, or a watch showed an update. */
  readonly answered: readonly Check<Asked>[];
  /** Before the fleet stops. */
  readonly beforeEnd: readonly Check<undefined>[];
  readonly atEnd: readonly Check<End>[];
}
